"""What came of the checks, for people, for programs, and for pipelines that show tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from falsework.checks.verify.model import Outcome, Result

SCHEMA = 1
"""Of the JSON. It grows when a reader would have to change; new keys do not make it grow."""
_GLANCE = 100
"""How much of a check's evidence its line in the table has."""


def summary(results: Sequence[Result], seconds: float) -> str:
    counts = Counter(result.verdict.outcome for result in results)
    told = f"{counts[Outcome.PASS]} passed, {counts[Outcome.FAIL]} failed, {counts[Outcome.SKIP]} skipped"
    return f"{len(results)} checks in {seconds:.1f} s: {told}"


def as_table(results: Sequence[Result], seconds: float) -> str:
    width = max((len(result.check.id) for result in results), default=0)
    lines = [f"{'OUTCOME':<8} {'CHECK':<{width}} EVIDENCE"]
    lines += [
        f"{result.verdict.outcome:<8} {result.check.id:<{width}} {_at_a_glance(result.verdict.evidence)}".rstrip()
        for result in results
    ]
    for result in results:
        if result.verdict.outcome is Outcome.FAIL:
            lines += ["", *_explained(result)]
    return "\n".join([*lines, "", summary(results, seconds)]) + "\n"


def _at_a_glance(text: str) -> str:
    return text if len(text) <= _GLANCE else f"{text[: _GLANCE - 1]}…"


def _explained(result: Result) -> list[str]:
    check = result.check
    where = f"{check.place} {check.machine}".rstrip()
    lines = [
        f"{check.id} failed",
        f"  source    {check.source}",
        f"  where     {where}",
        f"  printed   {check.command}",
    ]
    if check.as_run:
        lines.append(f"  typed     {check.as_run} ({check.because})")
    return [*lines, f"  expected  {check.expected}", f"  found     {result.verdict.evidence}"]


def as_json(results: Sequence[Result], seconds: float) -> str:
    counts = Counter(result.verdict.outcome for result in results)
    document = {
        "schema": SCHEMA,
        "seconds": round(seconds, 3),
        "counts": {str(outcome): counts[outcome] for outcome in Outcome},
        "checks": [_entry(result) for result in results],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _entry(result: Result) -> dict[str, object]:
    check, verdict = result.check, result.verdict
    is_skipped = verdict.outcome is Outcome.SKIP
    return {
        "id": check.id,
        "source": {"file": check.source.file, "section": check.source.section},
        "command": check.command,
        "asRun": check.as_run or None,
        "because": check.because or None,
        "where": str(check.place),
        "machine": check.machine or None,
        "expected": check.expected,
        "outcome": str(verdict.outcome),
        "evidence": None if is_skipped else verdict.evidence,
        "skipReason": verdict.evidence if is_skipped else None,
        "seconds": round(result.seconds, 3),
    }


def as_junit(results: Sequence[Result], seconds: float) -> str:
    """A suite for each source."""
    root = ET.Element("testsuites", {"name": "falsework verify", "time": f"{seconds:.3f}", **_counted(results)})
    for file in dict.fromkeys(result.check.source.file for result in results):
        mine = [result for result in results if result.check.source.file == file]
        spent = sum(result.seconds for result in mine)
        suite = ET.SubElement(root, "testsuite", {"name": file, "time": f"{spent:.3f}", **_counted(mine)})
        for result in mine:
            _case(suite, result)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counted(results: Sequence[Result]) -> dict[str, str]:
    counts = Counter(result.verdict.outcome for result in results)
    return {
        "tests": str(len(results)),
        "failures": str(counts[Outcome.FAIL]),
        "errors": "0",
        "skipped": str(counts[Outcome.SKIP]),
    }


def _case(suite: ET.Element, result: Result) -> None:
    check, verdict = result.check, result.verdict
    case = ET.SubElement(suite, "testcase", classname=check.source.section, name=check.id, time=f"{result.seconds:.3f}")
    if verdict.outcome is Outcome.FAIL:
        problem = ET.SubElement(case, "failure", message=_printable(verdict.evidence))
        problem.text = _printable("\n".join(_explained(result)))
    elif verdict.outcome is Outcome.SKIP:
        ET.SubElement(case, "skipped", message=_printable(verdict.evidence))
    else:
        ET.SubElement(case, "system-out").text = _printable(verdict.evidence)


def _printable(text: str) -> str:
    """XML knows no control characters, and programs at a terminal print some."""
    return "".join(sign for sign in text if sign.isprintable() or sign == "\n")
