"""Conditions: what is so, since when, and why."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

Condition = dict[str, Any]


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> str:
    return timestamp(datetime.now(UTC))


def condition(kind: str, status: bool | None, reason: str = "", message: str = "") -> Condition:
    """None is not known."""
    said = "Unknown" if status is None else str(status)
    texts = {key: value for key, value in (("reason", reason), ("message", message)) if value}
    return {"type": kind, "status": said, **texts}


def updated(old: Iterable[Condition], new: Iterable[Condition], moment: str) -> list[Condition]:
    """The old ones with the new ones in their places. The time is that of the last change of status."""
    result = {str(entry["type"]): entry for entry in old}
    for entry in new:
        known = result.get(entry["type"])
        since = known["lastTransitionTime"] if known and known["status"] == entry["status"] else moment
        result[entry["type"]] = {**entry, "lastTransitionTime": since}
    return list(result.values())


def without(conditions: Iterable[Condition], kind: str) -> list[Condition]:
    return [entry for entry in conditions if entry.get("type") != kind]


def status_of(conditions: Iterable[Condition] | None, kind: str) -> bool | None:
    """None if it is not said, or not known."""
    said = next((entry.get("status") for entry in conditions or () if entry.get("type") == kind), None)
    return {"True": True, "False": False}.get(str(said))
