"""Names of things to look at: each at most once at a time, now or later."""

from __future__ import annotations

import heapq
import threading
import time


class WorkQueue:
    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._number = 0
        self._changed = threading.Condition()
        self._closed = False

    def add(self, name: str, after: float = 0.0) -> None:
        """To be looked at in so many seconds. One that is due earlier anyway stays where it is."""
        due = time.monotonic() + after
        with self._changed:
            if self._due.get(name, due + 1) <= due:
                return
            self._due[name] = due
            self._number += 1
            heapq.heappush(self._heap, (due, self._number, name))
            self._changed.notify()

    def take(self, patience: float) -> str | None:
        """The next that is due, or None if there is none for so many seconds, or no more work is wanted."""
        deadline = time.monotonic() + patience
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                while self._heap and self._heap[0][0] <= now:
                    due, _, name = heapq.heappop(self._heap)
                    # An entry that was moved forward is still in its old place too.
                    if self._due.get(name) == due:
                        del self._due[name]
                        return name
                if now >= deadline:
                    return None
                self._changed.wait(min([deadline, *(entry[0] for entry in self._heap[:1])]) - now)
        return None

    def close(self) -> None:
        """No more work: whoever waits for some is told at once."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._closed

    def __len__(self) -> int:
        with self._changed:
            return len(self._due)
