"""Where a lab's things are on this host, and what they are called."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

NETWORK = "_network"
"""The namespace with the lab's bridge in it. No machine has a name like this."""


def state_root() -> Path:
    """Below it every lab has a folder. On the cache's file system, machines share the release's files by links."""
    return Path(os.environ.get("FALSEWORK_STATE") or "/var/lib/falsework")


@dataclass(frozen=True)
class Lab:
    """The lab of one site folder. It need not exist yet, nor does the folder have to exist any more."""

    id: str
    """In the name of everything outside the lab's own folder: namespaces, cgroups, units."""
    root: Path
    """Closed to others: machines' disks and keys are in it."""
    site_folder: Path

    @classmethod
    def of(cls, site_folder: Path, root: Path | None = None) -> Lab:
        """Known by the folder, not by the cluster's name: two folders may well hold sites of the same name."""
        folder = site_folder.resolve()
        lab_id = f"fw-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"
        return cls(lab_id, (root or state_root()) / lab_id, folder)

    @property
    def journal(self) -> Path:
        return self.root / "journal"

    @property
    def events(self) -> Path:
        """The event stream: one JSON object a line, of every run."""
        return self.root / "events"

    @property
    def lock(self) -> Path:
        """Held by whoever changes the lab. Beside it, not in it: it outlives the lab's folder."""
        return self.root.with_name(f"{self.id}.lock")

    @property
    def programs(self) -> Path:
        """Programs of the release a person uses from the host: kubectl, etcdctl, crictl."""
        return self.root / "bin"

    def machine(self, name: str) -> Path:
        """The folder of one machine (the helper is one too): its settings, its disk, its console."""
        return self.root / "machines" / name

    def netns(self, name: str) -> str:
        """The name of the network namespace of a machine, or of the lab's own (NETWORK)."""
        return f"{self.id}.{name}"

    def netns_path(self, name: str) -> Path:
        return Path("/run/netns") / self.netns(name)
