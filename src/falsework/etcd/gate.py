"""Whether enough of etcd lives on the masters for one of them to lead, and for API servers to be started on it.

Fewer than two members would be no better than the bootstrap's. And as every change of the list is a new revision, all
of them are waited for, though not for long: one master that does not come must not keep the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE = 15.0
"""Seconds after there are enough, for the rest to come."""
_ENOUGH = 2


@dataclass(frozen=True)
class Wait:
    reason: str
    seconds: float | None = None
    """After which time alone will do; None: only a change of etcd helps."""


class EtcdGate:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._enough_since: float | None = None

    def wait(self, live: int, replicas: int) -> Wait | None:
        """Before the first step. `live` members on masters, of as many as there are to be."""
        if not is_enough(live, replicas):
            self._enough_since = None
            return Wait(too_few(live, replicas))
        if live >= replicas:
            return None
        now = self._clock()
        if self._enough_since is None:
            self._enough_since = now
        left = self._enough_since + PATIENCE - now
        return Wait(f"{live} of {replicas} etcd members are on masters", left) if left > 0 else None


def is_enough(live: int, replicas: int) -> bool:
    return live >= min(_ENOUGH, replicas)


def too_few(live: int, replicas: int) -> str:
    return f"has less than {'two' if replicas > 1 else 'one'} live etcd endpoints: {live}"
