"""One question and what to make of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from falsework.errors import FalseworkError


@dataclass(frozen=True)
class Check:
    name: str
    unit: str
    """Where to look when it does not hold."""
    sentence: str
    """What the machine then does: `answers DNS queries`."""
    look: Callable[[], str]
    """Empty if it holds, else what is wrong. OSError: nobody answered."""

    def fault(self) -> str:
        try:
            return self.look()
        except (OSError, FalseworkError) as error:
            return str(error).partition("\n")[0]


def answered(status: int, wanted: int | None = None) -> str:
    good = status == wanted if wanted else status < 500
    return "" if good else f"HTTP status {status}"
