"""The door to other programs. Nothing else in Falsework starts a process.

A child dies with the thread that started it (`setpriv --pdeathsig`), so a Falsework that is killed
leaves no compiler or package manager at work behind it.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from falsework.errors import FalseworkError

_OUTPUT_KEPT = 64 * 1024
_LINES_SHOWN = 6


@dataclass(frozen=True)
class Finished:
    """A program that has ended, with the end of what it printed (stdout and stderr in one)."""

    argv: tuple[str, ...]
    returncode: int
    output: str

    def last_lines(self, count: int = _LINES_SHOWN) -> str:
        return "\n".join(self.output.strip().splitlines()[-count:])


class CommandError(FalseworkError):
    """A program ended badly, could not be started, or said nothing for too long."""

    def __init__(self, what: str, finished: Finished, *, cause: str | None = None, fix: str | None = None) -> None:
        super().__init__(what, cause=cause or finished.last_lines() or None, fix=fix)
        self.finished = finished


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    silence_limit: float | None = None,
    on_line: Callable[[str], None] | None = None,
    on_activity: Callable[[], bool] | None = None,
) -> Finished:
    """Run a program to its end and return what it printed; raise CommandError unless it exits with 0.

    `env` is added to the environment. With `silence_limit` the program is stopped when it has printed
    nothing for that many seconds and `on_activity`, if given, does not say that it is at work otherwise.
    """
    words = tuple(str(word) for word in argv)
    finished = _run(words, cwd, env, silence_limit, on_line, on_activity)
    if finished.returncode != 0:
        raise CommandError(f"{_shown(words)} ended with exit code {finished.returncode}", finished)
    return finished


def _run(
    words: tuple[str, ...],
    cwd: Path | None,
    env: Mapping[str, str] | None,
    silence_limit: float | None,
    on_line: Callable[[str], None] | None,
    on_activity: Callable[[], bool] | None,
) -> Finished:
    try:
        child = subprocess.Popen(
            ("setpriv", "--pdeathsig", "KILL", "--", *words),
            cwd=cwd,
            env={**os.environ, **env} if env else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise CommandError(f"{_shown(words)} could not be started", Finished(words, 127, reason)) from None
    assert child.stdout is not None
    output = bytearray()
    unfinished_line = b""
    last_sign_of_life = time.monotonic()
    with child.stdout as pipe, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=1.0 if silence_limit else None):
                chunk = os.read(pipe.fileno(), 65536)
                if not chunk:
                    break
                last_sign_of_life = time.monotonic()
                output += chunk
                del output[:-_OUTPUT_KEPT]
                if on_line:
                    *lines, unfinished_line = (unfinished_line + chunk).split(b"\n")
                    for line in lines:
                        on_line(line.decode(errors="replace"))
            elif on_activity and on_activity():
                last_sign_of_life = time.monotonic()
            if silence_limit and time.monotonic() - last_sign_of_life > silence_limit:
                _kill_group(child)
                raise CommandError(
                    f"{_shown(words)} did nothing for {silence_limit:.0f} s and was stopped",
                    Finished(words, 124, output.decode(errors="replace")),
                )
    return Finished(words, child.wait(), output.decode(errors="replace"))


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it started: it leads a session of its own."""
    os.killpg(child.pid, 9)
    child.wait()


def _shown(words: tuple[str, ...]) -> str:
    """A command short enough for a message: the program and its first words."""
    text = " ".join((Path(words[0]).name, *words[1:]))
    return text if len(text) <= 100 else text[:97] + "…"
