"""A process held still, and let go whatever happens."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.bootstrap.api_hold import held, let_go

NAME = f"held-{os.getpid()}"
"""No other process has it; the kernel keeps 15 characters."""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[int]:
    program = tmp_path / NAME
    program.symlink_to("/usr/bin/sleep")
    with subprocess.Popen([program, "60"]) as child:
        until(child.pid, NAME, "comm")
        yield child.pid
        child.kill()


def until(pid: int, wanted: str, file: str = "status") -> None:
    deadline = time.monotonic() + 60
    while wanted not in (found := Path(f"/proc/{pid}/{file}").read_text()):
        assert time.monotonic() < deadline, found
        time.sleep(0.001)


def test_it_stands_still_in_the_block_alone(process: int) -> None:
    with held(NAME):
        until(process, "T (stopped)")
    until(process, "S (sleeping)")


def test_it_is_let_go_when_the_block_fails_and_by_whoever_comes_later(process: int) -> None:
    with pytest.raises(ValueError, match="wrong"), held(NAME):
        until(process, "T (stopped)")
        raise ValueError("wrong")
    until(process, "S (sleeping)")
    context = held(NAME)
    context.__enter__()
    until(process, "T (stopped)")
    let_go(NAME)
    until(process, "S (sleeping)")
