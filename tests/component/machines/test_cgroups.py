"""Control groups on this host's real hierarchies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from falsework.machines import cgroups
from falsework.machines.cgroups import Group

NAME = f"falsework-test-{os.getpid()}"


@pytest.fixture
def groups() -> Iterator[list[Group]]:
    base = cgroups.base_groups()
    yield [cgroups.make(group, NAME) for group in base]
    mine = [group.child(NAME) for group in base]
    cgroups.kill(mine)
    cgroups.remove(mine)
    assert not any(group.path.exists() for group in mine)


def start(groups: list[Group], *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(cgroups.joined(groups, words))


def until_there(groups: list[Group], count: int) -> set[int]:
    """Until so many are in the last of the groups: a process joins one after the other."""
    deadline = time.monotonic() + 60
    while len(found := cgroups.processes(groups[-1:])) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_every_hierarchy_of_a_process_is_found() -> None:
    lines = open("/proc/self/cgroup").read().splitlines()  # noqa: SIM115, PTH123
    found = cgroups.groups_of()
    assert len(found) == len(lines)
    assert all(str(os.getpid()) in (group.path / "cgroup.procs").read_text().split() for group in found)


def test_a_command_runs_in_all_the_groups(groups: list[Group]) -> None:
    inner = [cgroups.make(group, "inner") for group in groups]
    child = start(inner, "sleep", "60")
    try:
        assert until_there(groups, 1) == {child.pid}
        for group in cgroups.groups_of(child.pid):
            assert group.path.name == "inner"
    finally:
        child.kill()
        child.wait()


def test_a_command_that_cannot_get_in_does_not_run(groups: list[Group]) -> None:
    gone = [*groups, groups[0].child("not-there")]
    done = subprocess.run(cgroups.joined(gone, ("echo", "ran")), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ran" not in done.stdout


def test_killing_ends_everything_below_too(groups: list[Group]) -> None:
    # Where there are groups below, v2 allows no processes.
    beside = [cgroups.make(group, "beside") for group in groups]
    inner = [cgroups.make(group, "inner", "most") for group in groups]
    children = [start(beside, "sleep", "60"), start(inner, "sh", "-c", "trap '' TERM; sleep 60 & wait")]
    assert len(until_there(groups, 3)) == 3
    cgroups.kill(groups)
    assert not cgroups.processes(groups)
    assert [child.wait() for child in children] == [-signal.SIGKILL] * 2


def test_memory_is_limited(groups: list[Group]) -> None:
    cgroups.limit(groups, cpus=1, memory_mib=64)
    child = start(groups, "python3", "-c", "x = bytearray(200 << 20)")
    assert child.wait(120) != 0


def test_processor_time_is_limited(groups: list[Group]) -> None:
    cgroups.limit(groups, cpus=1, memory_mib=512)
    spinning = [start(groups, "sh", "-c", "while :; do :; done") for _ in range(3)]
    try:
        until_there(groups, 3)
        # The clock is looked at around the counter: what is used meanwhile is not more than it says.
        began, before = time.monotonic(), cgroups.usage(groups).cpu_seconds
        time.sleep(2)
        used = (cgroups.usage(groups).cpu_seconds - before) / (time.monotonic() - began)
        assert used < 1.2
    finally:
        for child in spinning:
            child.kill()
            child.wait()


def test_use_is_counted_beyond_the_end_of_a_process(groups: list[Group]) -> None:
    start(groups, "python3", "-c", "sum(range(3_000_000))").wait()
    assert cgroups.usage(groups).cpu_seconds > 0.02


def test_processes_in_the_way_of_children_are_moved_aside_and_come_back(groups: list[Group]) -> None:
    (group, *others) = groups
    if others or not group.unified:
        pytest.skip("only with cgroup v2 alone must a group with children have no processes")
    child = start(groups, "sleep", "60")
    try:
        until_there(groups, 1)
        inner = cgroups.make(group, "inner")
        assert {"cpu", "memory"} <= set((inner.path / "cgroup.controllers").read_text().split())
        assert cgroups.groups_of(child.pid) != groups
        assert cgroups.base_groups(child.pid) == groups
        cgroups.take_back(group)
        assert cgroups.groups_of(child.pid) != groups
        cgroups.remove([inner])
        cgroups.take_back(group)
        assert cgroups.groups_of(child.pid) == groups
        cgroups.take_back(group)
    finally:
        child.kill()
        child.wait()
