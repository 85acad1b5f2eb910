"""Where this process stands in the host's control groups: version 1, version 2 or both at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc/self")


@dataclass(frozen=True)
class Place:
    """Our own group in one hierarchy."""

    version: int
    controllers: tuple[str, ...]
    """With version 1 those the hierarchy is made of, with version 2 those that groups below ours can have."""
    path: Path


def own_places(proc: Path = PROC) -> list[Place]:
    """In every hierarchy that is mounted."""
    mounts = _mounts((proc / "mountinfo").read_text())
    places = []
    for line in (proc / "cgroup").read_text().splitlines():
        _, names, group = line.split(":", 2)
        controllers = tuple(names.split(",")) if names else ()
        for version, options, point, root in mounts:
            if version == (1 if controllers else 2) and options.issuperset(controllers):
                # In a container the mount begins further down than the paths in /proc do.
                below = group.removeprefix(root) if root != "/" else group
                path = point / below.lstrip("/")
                places.append(Place(version, controllers or _offered(path), path))
                break
    return places


def _mounts(mountinfo: str) -> list[tuple[int, frozenset[str], Path, str]]:
    """Of every hierarchy: version, options, where it is mounted, and which part of it."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            found.append((2 if kind == "cgroup2" else 1, frozenset(options.split(",")), Path(point), root))
    return found


def _offered(path: Path) -> tuple[str, ...]:
    try:
        return tuple((path / "cgroup.controllers").read_text().split())
    except OSError:
        return ()
