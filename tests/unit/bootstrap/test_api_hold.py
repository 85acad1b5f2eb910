"""A process held still, and let go whatever happens."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.bootstrap.api_hold import held, let_go

NAME = "held-by-a-test"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[int]:
    program = tmp_path / NAME
    program.symlink_to("/usr/bin/sleep")
    with subprocess.Popen([program, "60"]) as child:
        until(child.pid, NAME[:15], "comm")
        yield child.pid
        child.kill()


def until(pid: int, wanted: str, file: str = "status") -> None:
    for _ in range(100000):
        if wanted in Path(f"/proc/{pid}/{file}").read_text():
            return
    raise AssertionError(Path(f"/proc/{pid}/{file}").read_text())


def test_it_stands_still_in_the_block_alone(process: int) -> None:
    with held(NAME[:15]):
        until(process, "T (stopped)")
    until(process, "S (sleeping)")


def test_it_is_let_go_when_the_block_fails_and_by_whoever_comes_later(process: int) -> None:
    with pytest.raises(ValueError, match="wrong"), held(NAME[:15]):
        until(process, "T (stopped)")
        raise ValueError("wrong")
    until(process, "S (sleeping)")
    context = held(NAME[:15])
    context.__enter__()
    until(process, "T (stopped)")
    let_go(NAME[:15])
    until(process, "S (sleeping)")
