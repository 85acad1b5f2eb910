"""`kubectl get -w` left running: it may be cut off when an API server goes, and must get through again at once."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from lab_under_test import LabUnderTest


@dataclass
class Watched:
    events: int = 0
    reconnects: int = 0
    refused: list[str] = field(default_factory=list)
    """What kubectl said when it could not begin to watch, once it had watched before."""

    def __str__(self) -> str:
        return f"{self.events} events, {self.reconnects} reconnects, {len(self.refused)} times refused"


class _Watch:
    def __init__(self, lab: LabUnderTest) -> None:
        self._lab = lab
        self._over = threading.Event()
        self._running: subprocess.Popen[str] | None = None
        self.watched = Watched()

    def follow(self) -> None:
        while not self._over.is_set():
            seen, said = self._once()
            if self._over.is_set():
                return
            if seen:
                self.watched.reconnects += 1
            elif self.watched.events:
                self.watched.refused.append(said)
            self._over.wait(0.1 if self.watched.events else 0.5)

    def stop(self) -> None:
        self._over.set()
        if self._running is not None:
            self._running.terminate()

    def _once(self) -> tuple[int, str]:
        """How many events it saw until it ended, and what it said then."""
        words = ("kubectl", "get", "configmaps", "-w", "--no-headers", "-o", "name")
        command = self._lab.command(*words)
        with subprocess.Popen(
            command, env=self._lab.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as self._running:
            assert self._running.stdout is not None
            assert self._running.stderr is not None
            if self._over.is_set():
                # `stop` came while this one was being started, and could not end it.
                self._running.terminate()
            seen = 0
            for _ in self._running.stdout:
                seen += 1
                self.watched.events += 1
            return seen, self._running.stderr.read().strip()


@contextlib.contextmanager
def watching(lab: LabUnderTest) -> Iterator[Watched]:
    """The poller's object, which changes all the time."""
    watch = _Watch(lab)
    thread = threading.Thread(target=watch.follow, name="kubectl get -w")
    thread.start()
    try:
        yield watch.watched
    finally:
        watch.stop()
        thread.join()
