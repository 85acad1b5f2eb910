"""Waiting for something, and saying for what: once when it changes, and now and then while it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from falsework.errors import FalseworkError

Say = Callable[[str], None]

QUICK = 0.05
"""Seconds between two looks where others wait for us."""
CALM = 1.0
"""The same where they do not."""
_REMIND = 60.0
_BRIEF = 2.0
"""Seconds between two reasons that are told: many pass by themselves, quicker than anybody reads."""


@dataclass(frozen=True)
class Wait:
    say: Say
    pause: float = QUICK
    limit: float | None = None
    """Seconds after which it fails; for ever if None."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def until(self, what: str, look: Callable[[], str | None]) -> None:
        """Call `look` until it gives None; what it gives before that is the reason we wait for."""
        started = self.clock()
        said, said_at = "", started - _BRIEF
        while reason := look():
            now = self.clock()
            if self.limit is not None and now - started > self.limit:
                raise FalseworkError(f"time out waiting for {what}", cause=reason)
            if now - said_at >= (_REMIND if reason == said else _BRIEF):
                self.say(f"Waiting for {what}: {reason}")
                said, said_at = reason, now
            self.sleep(self.pause)
