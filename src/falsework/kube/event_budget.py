"""How many events may be told, so that telling is never a burden for others."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """A few at once, then as many as time allows; for each name (whoever or whatever causes them) and for all."""

    OWN, OWN_PER_SECOND = 10.0, 0.1
    ALL, ALL_PER_SECOND = 100.0, 2.0
    MOST_NAMES = 1000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all = (self.ALL, clock())
        self._own: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> bool:
        now = self._clock()
        own = _grown(self._own.pop(name, (self.OWN, now)), now, self.OWN, self.OWN_PER_SECOND)
        everyone = _grown(self._all, now, self.ALL, self.ALL_PER_SECOND)
        allowed = own >= 1 and everyone >= 1
        self._own[name] = (own - 1 if allowed else own, now)
        self._all = (everyone - 1 if allowed else everyone, now)
        while len(self._own) > self.MOST_NAMES:
            # Whoever was heard longest ago.
            del self._own[next(iter(self._own))]
        return allowed


def _grown(state: tuple[float, float], now: float, most: float, per_second: float) -> float:
    return min(most, state[0] + (now - state[1]) * per_second)
