"""What is wrong with a site: every problem with its place, what it is and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from falsework.errors import UsageError


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """A position in a file; line and column count from 1. Line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Problem:
    place: Place
    what: str
    """What is wrong; a clause without a full stop."""
    right: str
    """What would be right; the same."""
    severity: Severity = Severity.ERROR

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def line(self) -> int:
        return self.place.line

    @property
    def column(self) -> int:
        return self.place.column

    def __str__(self) -> str:
        mark = "warning: " if self.severity is Severity.WARNING else ""
        return f"{self.place}: {mark}{self.what}; {self.right}"

    def as_json(self) -> dict[str, str | int]:
        return {
            "severity": str(self.severity),
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "what": self.what,
            "right": self.right,
        }


@dataclass
class Problems:
    """Collects problems, so that a person sees all of them at once."""

    found: list[Problem] = field(default_factory=list)

    def error(self, place: Place, what: str, right: str) -> None:
        self.found.append(Problem(place, what, right))

    def warn(self, place: Place, what: str, right: str) -> None:
        self.found.append(Problem(place, what, right, Severity.WARNING))

    def has_errors(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.found)

    def in_order(self) -> tuple[Problem, ...]:
        """By file, then line; each only once (an alias can bring the same line in twice)."""
        unique = dict.fromkeys(self.found)
        return tuple(sorted(unique, key=lambda problem: (problem.place, problem.severity)))


class SiteError(UsageError):
    """The site's files cannot be used. Carries all problems, warnings too."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        errors = sum(problem.severity is Severity.ERROR for problem in self.problems)
        super().__init__(
            f"the site's files have {counted(errors, 'problem')}; nothing was touched",
            fix="mend these lines and run the same command again",
        )

    def __str__(self) -> str:
        return "\n".join((self.what, *(f"  {problem}" for problem in self.problems), f"  next:  {self.fix}"))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
