"""One concern of an operator: what wakes it, one look at the world and what follows, and what becomes of failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, WatchEvent
from falsework.kube.informer import Informer
from falsework.operators.runtime.log import Log
from falsework.operators.runtime.waiting import Backoff
from falsework.work_queue import WorkQueue

Key = Callable[[WatchEvent], str | None]
Wake = tuple[Informer, Key]

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
LASTING = 10.0
"""Seconds after which a failure is told: by then whatever it needed should have come."""


def always(_: WatchEvent) -> str:
    """The key of a controller that looks at everything at once."""
    return ""


@dataclass(frozen=True)
class Controller:
    """`sync` gets a key, looks at the world, and does what follows. It gives back the seconds after which it wants to
    look again, or None: at the next change, or when `resync` seconds are over. What it raises (FalseworkError) is tried
    again, after longer and longer pauses. It is never called twice at a time.

    `wakes` says whose changes concern it, and with which key; None is of no interest. `all_keys` are those it looks at
    when it starts, and whenever `resync` seconds are over.
    """

    name: str
    """Such as BootstrapTeardownController: its condition is then BootstrapTeardownControllerDegraded."""
    sync: Callable[[str], float | None]
    wakes: Sequence[Wake] = ()
    resync: float = 60.0
    all_keys: Callable[[], Iterable[str]] = lambda: ("",)


@dataclass
class Count:
    """What a controller has done so far."""

    syncs: int = 0
    failures: int = 0
    seconds: float = 0.0


class Worker:
    """A controller at work, in a thread of its own. `told` hears of failures that last, by key; empty: none."""

    def __init__(
        self,
        controller: Controller,
        log: Log,
        told: Callable[[dict[str, str]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = controller.name
        self.count = Count()
        self.busy_since: float | None = None
        """Of the clock, while it is in a sync."""
        self._controller = controller
        self._log = log
        self._told = told
        self._clock = clock
        self._queue = WorkQueue()
        self._troubles: dict[str, _Trouble] = {}
        self._said: dict[str, str] | None = None
        self._thread = threading.Thread(target=self._run, name=controller.name, daemon=True)

    @property
    def waiting(self) -> int:
        """Keys in the queue, those for later too."""
        return len(self._queue)

    def wake(self, key: str, after: float = 0.0) -> None:
        self._queue.add(key, after)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """After the sync in hand."""
        self._queue.close()

    def join(self, seconds: float) -> bool:
        """Whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        resync = self._controller.resync
        due = self._clock()
        while not self._queue.is_closed:
            if self._clock() >= due:
                due = self._clock() + resync
                self._wake_all()
            key = self._queue.take(due - self._clock())
            if key is not None:
                self._attend_to(key)

    def _wake_all(self) -> None:
        try:
            keys = list(self._controller.all_keys())
        except Exception as error:  # noqa: BLE001 - this thread must go on
            self._log.error(str(mistake(error)))
            return
        for key in keys:
            self.wake(key)

    def _attend_to(self, key: str) -> None:
        began = self.busy_since = self._clock()
        self.count.syncs += 1
        try:
            again = self._controller.sync(key)
        except FalseworkError as error:
            self._failed(key, error)
        except Exception as error:  # noqa: BLE001 - one controller's mistake must not end the others
            self._failed(key, mistake(error))
        else:
            self._troubles.pop(key, None)
            if again is not None:
                self.wake(key, again)
        finally:
            self.busy_since = None
            self.count.seconds += self._clock() - began
        self._tell()

    def _failed(self, key: str, error: FalseworkError) -> None:
        self.count.failures += 1
        trouble = self._troubles.setdefault(key, _Trouble(self._clock()))
        pause = trouble.backoff.pause()
        why = f"{error.what}: {error.cause}" if error.cause else error.what
        if why != trouble.why and not (isinstance(error, ApiError) and error.is_conflict):
            # Somebody else was quicker: that is no news, it is looked at again.
            self._log.warning(f"Could not finish: {why}", **({"key": key} if key else {}))
        trouble.why = why
        self.wake(key, pause)

    def _tell(self) -> None:
        now = self._clock()
        lasting = {key: trouble.why for key, trouble in self._troubles.items() if now - trouble.since >= LASTING}
        if lasting == self._said:
            return
        try:
            self._told(lasting)
            self._said = lasting
        except FalseworkError as error:
            # With the next sync; the API that cannot be told is the one that is in trouble.
            self._log.warning(f"Could not report: {error.cause or error.what}")


@dataclass
class _Trouble:
    since: float
    why: str = ""

    def __post_init__(self) -> None:
        self.backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)


def mistake(error: Exception) -> FalseworkError:
    """A fault of this program. Where it is helps to find it; what was in its hands may be a secret."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else "unknown"
    return FalseworkError(f"{type(error).__name__} at {place}", cause="a mistake in the operator")
