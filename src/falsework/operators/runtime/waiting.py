"""Waiting for work, and for the end."""

from __future__ import annotations

import signal
import threading


class Bell:
    """Rings when there may be something to do. Any number of rings before anyone listens are one."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._ended = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def end(self) -> None:
        """No more work: whoever waits, stops waiting."""
        self._ended.set()
        self._rung.set()

    @property
    def ended(self) -> threading.Event:
        return self._ended

    def wait(self, seconds: float) -> bool:
        """Whether it rang before the time was over."""
        rang = self._rung.wait(seconds)
        if not self._ended.is_set():
            self._rung.clear()
        return rang

    def end_on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.end())


class Backoff:
    """Longer and longer pauses, until something went well."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = self._next = first
        self._longest = longest

    def pause(self) -> float:
        pause, self._next = self._next, min(self._next * 2, self._longest)
        return pause

    def reset(self) -> None:
        self._next = self._first
