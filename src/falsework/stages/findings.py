"""What a check of the host found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from falsework.errors import FalseworkError
from falsework.site.problems import counted


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Good to know; nothing to do."""
    WARNING = "warning"
    """It may do, but slowly or not for long."""
    PROBLEM = "problem"
    """It cannot do."""


@dataclass(frozen=True)
class Finding:
    level: Level
    what: str
    fix: str = ""

    def __str__(self) -> str:
        mark = "" if self.level is Level.OK else f"{self.level}: "
        return f"{mark}{self.what}; {self.fix}" if self.fix else f"{mark}{self.what}"


def ok(what: str) -> Finding:
    return Finding(Level.OK, what)


def note(what: str) -> Finding:
    return Finding(Level.NOTE, what)


def warning(what: str, fix: str) -> Finding:
    return Finding(Level.WARNING, what, fix)


def problem(what: str, fix: str) -> Finding:
    return Finding(Level.PROBLEM, what, fix)


class HostNotFitError(FalseworkError):
    """All problems at once, each with what to do about it."""

    def __init__(self, problems: Sequence[Finding]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            f"this host has {counted(len(problems), 'problem')} that must be solved first: "
            + "; ".join(found.what for found in problems),
            fix="do what stands behind each, then run the same command again",
        )

    def __str__(self) -> str:
        head = f"this host has {counted(len(self.problems), 'problem')} that must be solved first"
        lines = (f"  {found.what}\n    → {found.fix}" for found in self.problems)
        return "\n".join((head, *lines, "  next:  do this, then run the same command again"))
