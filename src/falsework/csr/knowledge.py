"""What the rules need to know, out of the files of the bootstrap machine: the site's machines, and who has fetched
its config since this machine was started (written by the Machine Config Server)."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from pathlib import Path

from falsework.csr.rules import KnownMachine
from falsework.errors import FalseworkError
from falsework.site.model import Role, Site

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SIZE_LIMIT = 1 << 20


def machines_in(inventory: bytes) -> dict[str, KnownMachine]:
    """Out of the inventory the bootstrap machine was given."""
    try:
        return {
            entry["name"]: KnownMachine(Role(entry["role"]), ipaddress.ip_address(entry["address"]))
            for entry in json.loads(inventory)
        }
    except (ValueError, TypeError, KeyError):
        raise FalseworkError(
            "the inventory of the site cannot be read", cause="it was changed by hand, or is only half there"
        ) from None


def machines_of(site: Site) -> dict[str, KnownMachine]:
    return {site.fqdn(machine): KnownMachine(machine.role, machine.address) for machine in site.machines}


class Fetched:
    """Who has fetched its config in this boot. A file that is missing or broken is one in which nobody is noted."""

    def __init__(self, path: Path, boot: str) -> None:
        self._path = path
        self._boot = boot
        self._seen: tuple[int, int, int] | None = None
        self._boots: dict[str, str] = {}

    @classmethod
    def in_this_boot(cls, path: Path) -> Fetched:
        return cls(path, BOOT_ID.read_text())

    def refresh(self) -> bool:
        """Whether the file has changed since it was last read. It is replaced, never written to."""
        try:
            status = self._path.stat()
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        except OSError:
            seen = None
        if seen == self._seen:
            return False
        self._seen = seen
        self._boots = _boots_in(self._path)
        return True

    def reason_against(self, node: str) -> str | None:
        return reason_against(node, self._boots, self._boot)


def reason_against(node: str, boots: Mapping[str, str], boot: str) -> str | None:
    """Why a machine counts as one that has not fetched its config; None if it has."""
    if node in boots and _plain(boots[node]) == _plain(boot):
        return None
    earlier = ", only before that" if node in boots else ""
    return f"{node} has not fetched its config since the bootstrap machine was started{earlier}"


def _plain(boot: str) -> str:
    """The kernel writes it with dashes, systemd without."""
    return boot.strip().replace("-", "")


def boots_in(content: bytes) -> dict[str, str]:
    """Node name → the boot of the bootstrap machine in which it last fetched its config."""
    try:
        noted = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {name: str(entry["boot"]) for name, entry in noted.items() if isinstance(entry, dict) and entry.get("boot")}


def _boots_in(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            return boots_in(file.read(_SIZE_LIMIT))
    except OSError:
        return {}
