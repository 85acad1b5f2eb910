"""What came of the tests: read from the JUnit files they leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from xml.etree import ElementTree as ET

_TEST, _FAILED = "[It] ", "[FAILED] "
_WORTH_TELLING = 200
"""Characters; the rest is in the log."""


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True)
class Case:
    name: str
    outcome: Outcome
    seconds: float
    why: str = ""
    """The beginning of what a failed test says."""


def cases_in(file: Path) -> Iterator[Case]:
    """Every test that was run, from a report."""
    # Written a moment ago by the tests we started.
    for element in ET.parse(file).iter("testcase"):  # noqa: S314
        name = element.get("name", "")
        faults = [fault for kind in ("failure", "error") if (fault := element.find(kind)) is not None]
        # What prepares and ends the whole suite is no test; that it failed is worth knowing.
        if element.find("skipped") is not None or not (name.startswith(_TEST) or faults):
            continue
        outcome, why = (Outcome.FAILED, _beginning(faults[0])) if faults else (Outcome.PASSED, "")
        yield Case(name.removeprefix(_TEST), outcome, float(element.get("time", 0)), why)


def _beginning(fault: ET.Element) -> str:
    words = (fault.text or fault.get("message") or "without a word").removeprefix(_FAILED).split()
    return shorten(" ".join(words), _WORTH_TELLING, placeholder=" …")


def failed(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if case.outcome is Outcome.FAILED]


def described(cases: Sequence[Case]) -> list[str]:
    """Lines for a person: the failed ones with their reasons, and the count."""
    wrong = failed(cases)
    lines = [line for case in wrong for line in (f"FAILED {case.name}", f"       {case.why}")]
    return [*lines, f"{len(cases)} run, {len(cases) - len(wrong)} passed, {len(wrong)} failed"]
