"""Settings of the one kernel that host and machines share. Machines change some; a lab that goes puts them back."""

from __future__ import annotations

import re
from pathlib import Path

from falsework.lab.folder import Lab
from falsework.lab.journal import Journal, Thing

KIND = "sysctl"

KUBELET = (
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
)
"""What every kubelet sets as it starts. (It and kube-proxy set net.* too, but those are each machine's own.)"""

LIMITS = {"fs.inotify.max_user_instances": 4096, "fs.inotify.max_user_watches": 524288}
"""All machines' systemds, kubelets and API servers share one allowance of root's, and fail in odd ways without it."""

_PROC = Path("/proc/sys")


def note(lab: Lab, os_root: Path, proc: Path = _PROC) -> None:
    """Write down how they are now. Before the first machine starts: afterwards they are no longer the host's."""
    journal = Journal(lab.journal)
    elsewhere = _noted_by_others(lab)
    for name in (*KUBELET, *LIMITS, *settings_of_image(os_root)):
        path = _path(proc, name)
        if path.exists():
            # Where another lab's machines have been at it, only that lab knows how it was.
            journal.creating(KIND, name, value=elsewhere.get(name, path.read_text().strip()))


def raise_limits(proc: Path = _PROC) -> None:
    """As long as there is a lab. They must have been noted."""
    for name, wanted in LIMITS.items():
        path = _path(proc, name)
        if path.exists() and int(path.read_text()) < wanted:
            path.write_text(f"{wanted}\n")


def are_noted(lab: Lab) -> bool:
    return any(thing.kind == KIND for thing in Journal(lab.journal).standing())


def settings_of_image(os_root: Path) -> list[str]:
    """What systemd sets at a machine's boot, as the OS image tells it to; but for those that are each machine's own."""
    found: set[str] = set()
    for folder in ("usr/lib/sysctl.d", "etc/sysctl.d"):
        for path in (os_root / folder).glob("*.conf"):
            if not path.is_file():
                continue
            for line in path.read_text().splitlines():
                if match := re.match(r"\s*-?\s*([a-z][\w./-]*)\s*=", line):
                    found.add(match[1].replace("/", "."))
    return sorted(name for name in found if not name.startswith("net."))


def restore(lab: Lab, thing: Thing, proc: Path = _PROC) -> None:
    """Put a setting in the lab's journal back to what it was; one that is as it was is not touched."""
    if thing.name in _noted_by_others(lab):
        # The other lab's machines still want it; that lab puts it back.
        return
    path = _path(proc, thing.name)
    value = thing.detail["value"]
    if path.exists() and path.read_text().strip() != value:
        path.write_text(f"{value}\n")


def _noted_by_others(lab: Lab) -> dict[str, str]:
    journals = (path for path in lab.root.parent.glob("fw-*/journal") if path != lab.journal)
    return {
        thing.name: thing.detail["value"]
        for path in journals
        for thing in Journal(path).standing()
        if thing.kind == KIND
    }


def _path(proc: Path, name: str) -> Path:
    return proc / name.replace(".", "/")
