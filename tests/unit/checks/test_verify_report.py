"""How the checks are run, and what is told of them."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from falsework.checks.verify import report, runner
from falsework.checks.verify.model import Check, Outcome, Place, Result, Source, Verdict, failed, passed, skipped
from falsework.errors import FalseworkError, UsageError


def check(name: str, verdict: Verdict | Exception) -> Check:
    def look() -> Verdict:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return Check(
        name, Source("000_guide.txt", "Test"), "oc get x", Place.SHELL, "x & y", look, as_run="oc get y", because="z"
    )


CHECKS = [
    check("000/test/good", passed("<all> is well\x1b")),
    check("000/test/bad", failed("1 < 2")),
    check("etcd/none", skipped("nothing to ask")),
]


def results() -> list[Result]:
    return runner.run(CHECKS)


def test_checks_end_in_their_order_and_are_told_of() -> None:
    told: list[str] = []
    found = runner.run(CHECKS, lambda result: told.append(result.check.id))
    assert [result.check.id for result in found] == [one.id for one in CHECKS]
    assert sorted(told) == sorted(one.id for one in CHECKS)


@pytest.mark.parametrize("error", [FalseworkError("no API", cause="refused"), OSError(111, "refused")])
def test_a_look_that_cannot_look_has_failed(error: Exception) -> None:
    (result,) = runner.run([check("a/b", error)])
    assert result.verdict.outcome is Outcome.FAIL
    assert "refused" in result.verdict.evidence


@pytest.mark.parametrize(
    ("patterns", "ids"),
    [
        ([], ["000/test/good", "000/test/bad", "etcd/none"]),
        (["000"], ["000/test/good", "000/test/bad"]),
        (["000/test/"], ["000/test/good", "000/test/bad"]),
        (["*/good", "etcd"], ["000/test/good", "etcd/none"]),
        (["etcd/none"], ["etcd/none"]),
    ],
)
def test_some_can_be_chosen(patterns: list[str], ids: list[str]) -> None:
    assert [one.id for one in runner.chosen(CHECKS, patterns)] == ids


def test_a_check_nobody_knows_is_said() -> None:
    with pytest.raises(UsageError, match="no check is called 00"):
        runner.chosen(CHECKS, ["00"])


def test_the_table_explains_what_failed() -> None:
    text = report.as_table(results(), 1.25)
    assert "pass     000/test/good <all> is well" in text
    assert "000/test/bad failed\n  source    000_guide.txt: Test\n  where     lab shell\n  printed   oc get x\n" in text
    assert "  typed     oc get y (z)\n  expected  x & y\n  found     1 < 2\n" in text
    assert text.endswith("3 checks in 1.2 s: 1 passed, 1 failed, 1 skipped\n")


def test_json_has_everything() -> None:
    document = json.loads(report.as_json(results(), 1.25))
    assert document["counts"] == {"pass": 1, "fail": 1, "skip": 1}
    good, _, none = document["checks"]
    assert good["source"] == {"file": "000_guide.txt", "section": "Test"}
    assert (good["command"], good["asRun"], good["where"]) == ("oc get x", "oc get y", "lab shell")
    assert (none["outcome"], none["evidence"], none["skipReason"]) == ("skip", None, "nothing to ask")


def test_junit_can_be_read() -> None:
    root = ET.fromstring(report.as_junit(results(), 1.25))  # noqa: S314 - we have just written it
    assert {name: root.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
    }
    cases = {case.get("name"): case for case in root.iter("testcase")}
    failure = cases["000/test/bad"].find("failure")
    assert failure is not None
    assert failure.get("message") == "1 < 2"
    assert "oc get y" in (failure.text or "")
    assert cases["etcd/none"].find("skipped") is not None
