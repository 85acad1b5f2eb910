"""What a check of `falsework verify` is: data that says where it comes from, and one look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Place(StrEnum):
    """Where a command is typed."""

    HOST = "host"
    SHELL = "lab shell"
    HELPER = "helper"
    BOOTSTRAP = "bootstrap"
    MASTER = "master"
    WORKER = "worker"


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105 - a word for an outcome
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True)
class Source:
    file: str
    section: str

    def __str__(self) -> str:
        return f"{self.file}: {self.section}"


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    evidence: str
    """The line that shows it; of a skipped check, why it does not apply."""


def passed(evidence: str) -> Verdict:
    return Verdict(Outcome.PASS, evidence)


def failed(evidence: str) -> Verdict:
    return Verdict(Outcome.FAIL, evidence)


def skipped(reason: str) -> Verdict:
    return Verdict(Outcome.SKIP, reason)


@dataclass(frozen=True)
class Check:
    id: str
    """Lasting, such as `000/test/nodes`: people and pipelines refer to it."""
    source: Source
    command: str
    """As its source prints it."""
    place: Place
    expected: str
    look: Callable[[], Verdict]
    """Changes nothing. What it raises is a failure."""
    machine: str = ""
    """Which one, where there are several to choose from."""
    as_run: str = ""
    """Where it differs from what is printed."""
    because: str = ""
    """Why it differs."""


@dataclass(frozen=True)
class Result:
    check: Check
    verdict: Verdict
    seconds: float
