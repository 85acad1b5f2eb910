"""Trying again when the other side is busy or silent, and only then."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeVar

from falsework.errors import FalseworkError
from falsework.process import CommandError

Result = TypeVar("Result")

# Seconds between tries. Package registries that answer 'too many requests' want tens of seconds of quiet.
PAUSES = (2.0, 4.0, 8.0, 16.0, 32.0)

_PASSING_FAULTS = (
    (re.compile(r"\b429\b|too many requests", re.IGNORECASE), "answered 'too many requests'"),
    (re.compile(r"\b(500|502|503|504)\b"), "answered with a server error"),
    (re.compile(r"no such host|name resolution|could not resolve", re.IGNORECASE), "could not be found by name"),
    (re.compile(r"connection refused|unreachable|could not connect|failed to fetch", re.IGNORECASE), "refused to talk"),
    (re.compile(r"timed? ?out|connection reset|\bEOF\b|did nothing for", re.IGNORECASE), "did not answer"),
)


def passing_fault(text: str) -> str | None:
    """What a fault that may pass by itself is called, if `text` (a program's output) tells of one."""
    return next((name for pattern, name in _PASSING_FAULTS if pattern.search(text)), None)


def persist(
    who: str,
    action: Callable[[], Result],
    report: Callable[[str], None],
    *,
    fix: str,
    pauses: tuple[float, ...] = PAUSES,
) -> Result:
    """Do `action`; where `who` is busy or silent, wait and do it again, saying so each time."""
    for number, pause in enumerate((*pauses, None), start=1):
        try:
            return action()
        except CommandError as error:
            fault = passing_fault(f"{error.what}\n{error.finished.output}\n{error.finished.complaints}")
            if fault is None:
                raise
            if pause is None:
                raise FalseworkError(f"{who} {fault}, {number} times in a row", cause=error.cause, fix=fix) from None
            report(f"{who} {fault}; trying again in {pause:.0f} s (try {number + 1} of {len(pauses) + 1})")
            time.sleep(pause)
    raise AssertionError("the loop returns or raises")
