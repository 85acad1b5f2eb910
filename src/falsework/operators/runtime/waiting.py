"""Waiting longer and longer."""

from __future__ import annotations


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
