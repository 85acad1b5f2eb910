from pathlib import Path

import pytest

from falsework.lab.folder import Lab
from falsework.lab.journal import Journal, Thing
from falsework.machines import host_settings


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for name in ("kernel/panic", "vm/overcommit_memory", "kernel/pid_max"):
        path = tmp_path / "proc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0\n")
    return tmp_path / "proc"


@pytest.fixture
def os_root(tmp_path: Path) -> Path:
    folder = tmp_path / "os" / "usr" / "lib" / "sysctl.d"
    folder.mkdir(parents=True)
    (folder / "50.conf").write_text("# kernel.sysrq = 1\n-kernel.pid_max = 4194304\nnet.ipv4.ip_forward = 1\n")
    return tmp_path / "os"


def lab(tmp_path: Path, name: str) -> Lab:
    return Lab.of(tmp_path / name, tmp_path / "state")


def noted(lab: Lab) -> dict[str, Thing]:
    return {thing.name: thing for thing in Journal(lab.journal).standing()}


def test_what_machines_changed_is_put_back(tmp_path: Path, proc: Path, os_root: Path) -> None:
    mine = lab(tmp_path, "mine")
    host_settings.note(mine, os_root, proc)
    assert sorted(noted(mine)) == ["kernel.panic", "kernel.pid_max", "vm.overcommit_memory"]
    (proc / "kernel/panic").write_text("10\n")
    # A second run comes when machines have been at work already.
    host_settings.note(mine, os_root, proc)
    for thing in noted(mine).values():
        host_settings.restore(mine, thing, proc)
    assert (proc / "kernel/panic").read_text() == "0\n"


def test_what_is_as_it_was_is_not_written(tmp_path: Path, proc: Path, os_root: Path) -> None:
    mine = lab(tmp_path, "mine")
    host_settings.note(mine, os_root, proc)
    before = (proc / "kernel/panic").stat().st_mtime_ns
    host_settings.restore(mine, noted(mine)["kernel.panic"], proc)
    assert (proc / "kernel/panic").stat().st_mtime_ns == before


def test_the_last_of_several_labs_puts_back_what_the_first_one_found(tmp_path: Path, proc: Path, os_root: Path) -> None:
    first, second = lab(tmp_path, "first"), lab(tmp_path, "second")
    host_settings.note(first, os_root, proc)
    (proc / "kernel/panic").write_text("10\n")
    host_settings.note(second, os_root, proc)
    thing = noted(first)["kernel.panic"]
    host_settings.restore(first, thing, proc)
    Journal(first.journal).removed(thing)
    assert (proc / "kernel/panic").read_text() == "10\n", "the other lab's machines are still at work"
    host_settings.restore(second, noted(second)["kernel.panic"], proc)
    assert (proc / "kernel/panic").read_text() == "0\n"
