"""Waiting for what is to come, and saying what has not."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 180.0
"""Seconds. A host may be busy with other tests: nothing is concluded from how long something takes."""
_PAUSE = 0.02


def eventually(
    condition: Callable[[], object],
    why: str | Callable[[], object] = "it has not come about",
    patience: float = PATIENCE,
) -> None:
    """`why` is what is said when it does not: what was seen instead, asked for only then."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, why() if callable(why) else why
        time.sleep(_PAUSE)
