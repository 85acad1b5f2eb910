"""The door to other programs. Nothing else in Falsework starts a process.

A child dies with the thread that started it (`setpriv --pdeathsig`), so a Falsework that is killed
leaves no compiler or package manager at work behind it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from falsework.errors import FalseworkError

_OUTPUT_KEPT = 64 * 1024
_LINES_SHOWN = 6

_running: set[subprocess.Popen[bytes]] = set()
_running_lock = threading.Lock()


@dataclass(frozen=True)
class Finished:
    """A program that has ended, with the end of what it printed to stdout and to stderr."""

    argv: tuple[str, ...]
    returncode: int
    output: str
    complaints: str = ""

    def last_lines(self, count: int = _LINES_SHOWN) -> str:
        """The end of what it said about itself."""
        return "\n".join((self.complaints.strip() or self.output.strip()).splitlines()[-count:])


class CommandError(FalseworkError):
    """A program ended badly, could not be started, or said nothing for too long."""

    def __init__(self, what: str, finished: Finished) -> None:
        super().__init__(what, cause=finished.last_lines() or None)
        self.finished = finished


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    only_env: Mapping[str, str] | None = None,
    silence_limit: float | None = None,
    given: bytes = b"",
    kept: int = _OUTPUT_KEPT,
    each_line: Callable[[str], None] | None = None,
) -> Finished:
    """Run a program to its end and return what it printed; raise CommandError unless it exits with 0.

    `env` is added to our environment, `only_env` takes its place. With `silence_limit` the program is
    stopped when it has printed nothing for that many seconds. `given` is what it reads from its standard input.
    Of what it prints, the last `kept` bytes are returned. `each_line` is given every line of its stdout as it comes;
    an exception from there ends the program.
    """
    words = tuple(str(word) for word in argv)
    with (
        _readable(given) as source,
        _child(words, cwd, only_env or {**os.environ, **(env or {})}, None, source) as child,
    ):
        output, complaints, silent = _collect(child, silence_limit, kept, each_line)
        if silent:
            _kill_group(child)
        finished = Finished(words, child.wait(), output, complaints)
    if silent:
        raise CommandError(f"{_shown(words)} did nothing for {silence_limit:.0f} s and was stopped", finished)
    if finished.returncode != 0:
        raise CommandError(f"{_shown(words)} ended with exit code {finished.returncode}", finished)
    return finished


def lines(argv: Sequence[str | Path], *, quiet: float) -> Iterator[str]:
    """What a program prints, line by line, while it runs; an empty line whenever nothing has come for `quiet` seconds.

    Raises CommandError if it ends badly. It is ended when nobody wants its lines any more.
    """
    words = tuple(str(word) for word in argv)
    with _child(words, None, os.environ, None) as child, selectors.DefaultSelector() as selector:
        assert child.stdout is not None
        assert child.stderr is not None
        complaints, rest = bytearray(), b""
        selector.register(child.stdout, selectors.EVENT_READ)
        selector.register(child.stderr, selectors.EVENT_READ)
        while selector.get_map():
            events = selector.select(timeout=quiet)
            if not events:
                yield ""
            for key, _ in events:
                piece = os.read(key.fd, 65536)
                if not piece:
                    selector.unregister(key.fileobj)
                elif key.fileobj is child.stderr:
                    complaints += piece
                    del complaints[:-_OUTPUT_KEPT]
                else:
                    *whole, rest = (rest + piece).split(b"\n")
                    yield from (line.decode(errors="replace") for line in whole)
        if rest:
            yield rest.decode(errors="replace")
        finished = Finished(words, child.wait(), "", bytes(complaints).decode(errors="replace"))
    if finished.returncode != 0:
        raise CommandError(f"{_shown(words)} ended with exit code {finished.returncode}", finished)


def become(argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> NoReturn:
    """Let a program take our place: the terminal, the signals and the exit code are its own. `env` takes the place of
    our environment."""
    words = tuple(str(word) for word in argv)
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores it, and so would the program: `… | head` must end it as it ends others.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvpe(words[0], words, os.environ if env is None else env)  # noqa: S606 - no shell is wanted
    except OSError as error:
        raise CommandError(f"{_shown(words)} could not be started", Finished(words, 127, str(error.strerror))) from None


def detach(argv: Sequence[str | Path], *, log: Path) -> None:
    """Start a program that goes on after we have ended, in a session of its own, under nobody's care but its own."""
    words = tuple(str(word) for word in argv)
    # The fork in between leaves it without a parent of ours, so that we need not be there when it ends.
    with log.open("ab") as output, _child(("setsid", "--fork", *words), None, os.environ, output) as child:
        if child.wait() != 0:
            finished = Finished(words, child.returncode, log.read_text(errors="replace"))
            raise CommandError(f"{_shown(words)} could not be started", finished)


@contextlib.contextmanager
def _readable(content: bytes) -> Iterator[IO[bytes] | int]:
    """A file with this content: unlike a pipe, nobody has to keep filling it."""
    if not content:
        yield subprocess.DEVNULL
        return
    with os.fdopen(os.memfd_create("given"), "w+b") as file:
        file.write(content)
        file.seek(0)
        yield file


@contextlib.contextmanager
def daemon(argv: Sequence[str | Path], *, log: Path, patience: float = 30.0) -> Iterator[None]:
    """Run a program that tells when it is ready (systemd's notify protocol) for as long as the block lasts."""
    words = tuple(str(word) for word in argv)
    with (
        tempfile.TemporaryDirectory(prefix="falsework-notify-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices,
        log.open("wb") as output,
    ):
        notices.bind(f"{folder}/notify")
        with _child(words, None, {**os.environ, "NOTIFY_SOCKET": f"{folder}/notify"}, output) as child:
            _await_ready(words, child, notices, log, patience)
            yield
            # The whole group is told: a wrapper such as unshare does not pass the signal on.
            os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(patience)


def kill_all() -> None:
    """End every program we started, at once: for the moment we are told to stop ourselves."""
    with _running_lock:
        for child in _running:
            _kill_group(child)


@contextlib.contextmanager
def _child(
    words: tuple[str, ...],
    cwd: Path | None,
    env: Mapping[str, str],
    log: IO[bytes] | None,
    source: IO[bytes] | int = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """A running child. What it prints goes to `log`, or else to a pipe for each stream."""
    try:
        child = subprocess.Popen(
            ("setpriv", "--pdeathsig", "KILL", "--", *words),
            cwd=cwd,
            env=env,
            stdin=source,
            stdout=log or subprocess.PIPE,
            stderr=log or subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise CommandError(f"{_shown(words)} could not be started", Finished(words, 127, reason)) from None
    with _running_lock:
        _running.add(child)
    try:
        with child:
            try:
                yield child
            finally:
                if child.returncode is None:
                    _kill_group(child)
    finally:
        with _running_lock:
            _running.discard(child)


def _collect(
    child: subprocess.Popen[bytes], silence_limit: float | None, kept: int, each_line: Callable[[str], None] | None
) -> tuple[str, str, bool]:
    """The end of what comes on either stream, and whether nothing came for too long."""
    assert child.stdout is not None
    assert child.stderr is not None
    collected = {child.stdout: bytearray(), child.stderr: bytearray()}
    lines = _Lines(each_line) if each_line else None
    silent = False
    with selectors.DefaultSelector() as selector:
        for pipe in collected:
            selector.register(pipe, selectors.EVENT_READ, pipe)
        while selector.get_map() and not silent:
            events = selector.select(timeout=silence_limit)
            silent = not events
            for key, _ in events:
                chunk = os.read(key.fd, 65536)
                if lines and key.data is child.stdout:
                    lines.take(chunk)
                if chunk:
                    collected[key.data] += chunk
                    del collected[key.data][:-kept]
                else:
                    selector.unregister(key.fileobj)
    output, complaints = (bytes(text).decode(errors="replace") for text in collected.values())
    return output, complaints, silent


class _Lines:
    """Hands on whole lines of what comes in pieces. A line without end is cut, so that it cannot fill memory."""

    def __init__(self, each_line: Callable[[str], None]) -> None:
        self._each_line = each_line
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """The next piece; an empty one is the end."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if self._rest and (not chunk or len(self._rest) > _OUTPUT_KEPT):
            whole.append(self._rest)
            self._rest = b""
        for line in whole:
            self._each_line(line.decode(errors="replace"))


def _await_ready(
    words: tuple[str, ...], child: subprocess.Popen[bytes], notices: socket.socket, log: Path, patience: float
) -> None:
    ended = os.pidfd_open(child.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(notices, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            deadline = time.monotonic() + patience
            while events := selector.select(timeout=max(0.0, deadline - time.monotonic())):
                if any(key.fileobj is notices for key, _ in events):
                    if b"READY=1" in notices.recv(4096):
                        return
                else:
                    break
    finally:
        os.close(ended)
    _kill_group(child)
    finished = Finished(words, child.wait(), log.read_text(errors="replace"))
    raise CommandError(f"{_shown(words)} did not get ready in {patience:.0f} s", finished)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it started: it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _shown(words: tuple[str, ...]) -> str:
    """A command short enough for a message: the program and its first words."""
    text = " ".join((Path(words[0]).name, *words[1:]))
    return text if len(text) <= 100 else text[:97] + "…"
