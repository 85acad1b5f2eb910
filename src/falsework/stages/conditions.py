"""Named things that are waited for. No wait without a reason, and none ends only because a clock says so.

A wait gives up when nothing has changed for a while: no condition showed a state it had not shown before. However long
the whole takes, it goes on as long as there is progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from falsework.errors import FalseworkError

PROBE_INTERVAL = 0.1
_SAME_STATE_AGAIN = 1.0
"""Seconds between two notices of a condition whose state is the same and only the error is another."""


@dataclass(frozen=True)
class Seen:
    """What a probe found."""

    holds: bool
    state: str
    """In a few words; a new one counts as progress, so no times or counters that grow by themselves."""
    error: str = ""
    """What went wrong when looking, or with the thing itself."""
    evidence: str = ""
    """Where a person can see it: a file, a command, a line of a log."""


@dataclass(frozen=True)
class Condition:
    name: str
    """Short and lasting, such as `helper/dns`."""
    waits_for: str
    """A clause: `the helper answers DNS queries`."""
    probe: Callable[[], Seen]
    """Quick, and changes nothing. What it raises is taken as what went wrong."""
    patience: float
    """Seconds without progress after which the wait gives up: one of the site's timeouts."""
    cause: str
    """Why it most likely does not hold, when it never does."""
    fix: str
    """What to do then."""

    def look(self) -> Seen:
        try:
            return self.probe()
        except FalseworkError as error:
            return Seen(False, "not known", error=f"{error.what}: {error.cause}" if error.cause else error.what)
        except OSError as error:
            return Seen(False, "not known", error=str(error))


class NoProgressError(FalseworkError):
    """A wait that gave up. Carries what was waited for."""

    def __init__(self, late: Sequence[tuple[Condition, Seen]], quiet: float) -> None:
        first, seen = late[0]
        waited = "; ".join(f"{condition.waits_for} ({found.state})" for condition, found in late)
        last = f"; last error: {seen.error}" if seen.error else ""
        shown = f"; see {seen.evidence}" if seen.evidence else ""
        super().__init__(
            f"no progress for {quiet:.0f} s while waiting for: {waited}",
            cause=f"{first.cause}{last}{shown}",
            fix=first.fix,
        )
        self.late = tuple(late)


@dataclass
class _Waiting:
    condition: Condition
    since: float
    seen: Seen | None = None
    told: float = 0.0
    known: set[tuple[str, bool]] = field(default_factory=set)

    def take(self, seen: Seen, now: float) -> bool:
        """Whether this is progress: a state it has not shown before."""
        state = (seen.state, seen.holds)
        if self.seen is None or state != (self.seen.state, self.seen.holds):
            self.since = now
        self.seen = seen
        new = state not in self.known
        self.known.add(state)
        return new


Tell = Callable[[Condition, Seen, float], None]
"""Told of every change: the condition, what was seen, and for how many seconds it has been so."""


def wait_for(
    conditions: Sequence[Condition],
    tell: Tell,
    *,
    together: bool = False,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    interval: float = PROBE_INTERVAL,
) -> None:
    """Wait until each of them has held; with `together`, until all of them do at one time.

    `pause` waits at most that many seconds; whoever has a watch gives the `wait` of an Event it sets, and is not kept
    waiting for the next probe.
    """
    start = clock()
    waiting = [_Waiting(condition, start) for condition in conditions]
    last_progress = start
    while True:
        for one in waiting:
            before, seen, now = one.seen, one.condition.look(), clock()
            if one.take(seen, now):
                last_progress = now
            if _worth_telling(before, seen, now - one.told):
                tell(one.condition, seen, now - one.since)
                one.told = now
        open_ones = [(one, found) for one in waiting if (found := one.seen) and not found.holds]
        if not open_ones:
            return
        if not together:
            waiting = [one for one, _ in open_ones]
        quiet = clock() - last_progress
        late = [(one.condition, found) for one, found in open_ones if quiet >= one.condition.patience]
        if late:
            raise NoProgressError(late, quiet)
        pause(interval)


def _worth_telling(before: Seen | None, seen: Seen, since_told: float) -> bool:
    if before is None or (before.state, before.holds) != (seen.state, seen.holds):
        return True
    return before != seen and since_told >= _SAME_STATE_AGAIN
