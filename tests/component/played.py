"""Something outside of the tested program that a test plays, in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Self


class Played:
    """`_look` is called again and again while it is at work; what it raises is the test's to hear."""

    pause: float
    """Seconds between two looks."""

    def __init__(self) -> None:
        self.complaint: BaseException | None = None
        self._ended = threading.Event()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[Self]:
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()
        if self.complaint is not None:
            raise self.complaint

    def _work(self) -> None:
        try:
            while not self._ended.wait(self.pause):
                self._look()
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.complaint = error

    def _look(self) -> None:
        raise NotImplementedError
