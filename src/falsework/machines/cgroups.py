"""A machine's share of the host: control groups of its own, in every hierarchy the host has.

With cgroup v1 there is a hierarchy for each controller, with v2 one for all, and some hosts have both kinds. A
machine gets a child group in each: the limits are set there, what runs in it is found there, and when the machine is
gone, so are the groups. Left-over groups of an earlier life would make its kubelet wait for minutes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from falsework.errors import FalseworkError

KEEPER = "keeper"
"""For the process that runs a machine. With v2, a group with processes of its own cannot have limited children."""
MACHINE = "machine"
_WANTED = {"cpu", "cpuset", "io", "memory", "pids"}
"""What limits and kubelets need; no more is switched on."""
_NEIGHBOURS = "falsework-neighbours"
_PERIOD = 100_000
_PATIENCE = 10.0


@dataclass(frozen=True)
class Group:
    """One hierarchy's part of a set of processes."""

    path: Path
    controllers: frozenset[str]
    unified: bool

    def child(self, *names: str) -> Group:
        return Group(self.path.joinpath(*names), self.controllers, self.unified)

    @property
    def parent(self) -> Group:
        return Group(self.path.parent, self.controllers, self.unified)


def groups_of(pid: int | str = "self") -> list[Group]:
    """The groups a process is in, one for each hierarchy that is mounted."""
    mounted = _mounted()
    groups = []
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if found := mounted.get(names):
            place, shown = found
            # A container may see only a part of the hierarchy.
            inside = path.removeprefix(shown) if shown != "/" else path
            groups.append(Group(place / inside.lstrip("/"), frozenset(names.split(",")) - {""}, names == ""))
    if not groups:
        raise FalseworkError(
            "no control groups are mounted on this host",
            cause="/proc/self/mountinfo shows neither cgroup nor cgroup2",
            fix="mount them: `mount -t cgroup2 cgroup2 /sys/fs/cgroup`",
        )
    return groups


def top_groups() -> list[Group]:
    """The first group of every hierarchy that is mounted, or of the part that a container sees."""
    return [Group(place, frozenset(names.split(",")) - {""}, names == "") for names, (place, _) in _mounted().items()]


def _mounted() -> dict[str, tuple[Path, str]]:
    """Hierarchy, named as in /proc/self/cgroup → where it is mounted, and which part of it."""
    named = [line.split(":", 2)[1] for line in Path("/proc/self/cgroup").read_text().splitlines()]
    found: dict[str, tuple[Path, str]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        shown, place = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            found.setdefault("", (Path(place), shown))
        elif kind == "cgroup":
            for names in named:
                if names and set(names.split(",")) <= set(options.split(",")):
                    found.setdefault(names, (Path(place), shown))
    return found


def base_groups(pid: int | str = "self") -> list[Group]:
    """A process's groups, to make children in: not the one it was once moved to out of the children's way."""
    return [group.parent if group.path.name == _NEIGHBOURS else group for group in groups_of(pid)]


def make(group: Group, *names: str) -> Group:
    """A child, with every controller of its parent usable in it."""
    for name in names:
        _pass_on(group)
        child = group.child(name)
        with contextlib.suppress(FileExistsError):
            child.path.mkdir()
        if "cpuset" in group.controllers and not group.unified:
            # Without them nothing can run in it.
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if not (child.path / setting).read_text().strip():
                    (child.path / setting).write_text((group.path / setting).read_text())
        group = child
    return group


def _pass_on(group: Group) -> None:
    """Let a group's children have its controllers; needed with v2 only."""
    switch = group.path / "cgroup.subtree_control"
    if not group.unified or not switch.exists():
        return
    missing = _WANTED & set((group.path / "cgroup.controllers").read_text().split()) - set(switch.read_text().split())
    if not missing:
        return
    words = " ".join(f"+{name}" for name in sorted(missing))
    try:
        switch.write_text(words)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # Processes in the group itself stand in the way.
        neighbours = group.child(_NEIGHBOURS)
        neighbours.path.mkdir(exist_ok=True)
        _move(group, neighbours)
        switch.write_text(words)


def take_back(group: Group) -> None:
    """When no child needs the group's controllers any more, those moved out of the children's way come back."""
    neighbours = group.child(_NEIGHBOURS)
    if [path for path in group.path.glob("*/") if path.is_dir()] != [neighbours.path]:
        return
    switch = group.path / "cgroup.subtree_control"
    switch.write_text(" ".join(f"-{name}" for name in switch.read_text().split()))
    _move(neighbours, group)
    _remove_one(neighbours.path)


def _move(source: Group, target: Group) -> None:
    for pid in (source.path / "cgroup.procs").read_text().split():
        # It may have ended.
        with contextlib.suppress(OSError):
            (target.path / "cgroup.procs").write_text(pid)


def limit(groups: Iterable[Group], cpus: int, memory_mib: int) -> None:
    """What all processes in them may use together."""
    quota, memory = cpus * _PERIOD, memory_mib * 1024 * 1024
    for group in groups:
        if group.unified:
            _set(group.path / "cpu.max", f"{quota} {_PERIOD}")
            _set(group.path / "memory.max", str(memory))
        else:
            if "cpu" in group.controllers:
                _set(group.path / "cpu.cfs_period_us", str(_PERIOD))
                _set(group.path / "cpu.cfs_quota_us", str(quota))
            if "memory" in group.controllers:
                _set(group.path / "memory.limit_in_bytes", str(memory))


def _set(setting: Path, value: str) -> None:
    """A hierarchy may be there without the controller (v2 beside v1), or a kernel without the setting."""
    if setting.exists():
        setting.write_text(value)


def joined(groups: Iterable[Group], words: Sequence[str]) -> tuple[str, ...]:
    """The command that runs `words` in these groups, or nothing at all if it cannot get into one of them."""
    files = [str(group.path / "cgroup.procs") for group in groups]
    enter = 'while [ "$1" != -- ]; do echo 0 >"$1"; shift; done; shift; exec "$@"'
    return ("sh", "-ec", enter, "join", *files, "--", *words)


def processes(groups: Iterable[Group]) -> set[int]:
    """All in them and below, as the host numbers them."""
    found: set[int] = set()
    for group in groups:
        for folder in _below(group.path):
            with contextlib.suppress(OSError):
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
    return found


def kill(groups: Sequence[Group]) -> None:
    """End every process in them, and wait until they are gone."""
    deadline = time.monotonic() + _PATIENCE
    while pids := processes(groups):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise FalseworkError(
                f"processes {', '.join(map(str, sorted(pids)))} in {groups[0].path} do not end",
                cause="the kernel holds them, most often because a disk does not answer",
                fix="look at `dmesg` and the disk, then run the same command again",
            )
        # The kernel tells nobody when a v1 group is empty.
        time.sleep(0.005)


def remove(groups: Iterable[Group]) -> None:
    """Remove them with all below. They must have no processes any more."""
    for group in groups:
        for folder in reversed(_below(group.path)):
            _remove_one(folder)


def _remove_one(folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            # A process that has just ended is counted for a moment longer.
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _below(folder: Path) -> list[Path]:
    """The folder and all folders in it, parents first."""
    return [Path(path) for path, _, _ in os.walk(folder)]


@dataclass(frozen=True)
class Usage:
    cpu_seconds: float
    memory_bytes: int


def usage(groups: Iterable[Group]) -> Usage:
    """What the processes in them have used, those that have ended included, and what they hold now."""
    cpu, memory = 0.0, 0
    for group in groups:
        with contextlib.suppress(OSError):
            if "cpuacct" in group.controllers:
                cpu = int((group.path / "cpuacct.usage").read_text()) / 1e9
            if "memory" in group.controllers:
                memory = int((group.path / "memory.usage_in_bytes").read_text())
            if group.unified and (group.path / "memory.current").exists():
                memory = int((group.path / "memory.current").read_text())
                cpu = int((group.path / "cpu.stat").read_text().split()[1]) / 1e6
    return Usage(cpu, memory)
