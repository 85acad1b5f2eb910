from pathlib import Path

from falsework.conformance.report import Case, Outcome, cases_in, described, failed

REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5"><testsuite name="Kubernetes e2e suite">
 <testcase name="[ReportBeforeSuite]" classname="Kubernetes e2e suite" status="passed" time="0.1"></testcase>
 <testcase name="[SynchronizedBeforeSuite]" classname="Kubernetes e2e suite" status="passed" time="1"></testcase>
 <testcase name="[It] [sig-network] DNS should resolve [Conformance]" status="passed" time="12.5"></testcase>
 <testcase name="[It] [sig-node] Pods should run [Conformance]" status="failed" time="300">
  <failure message="" type="failed">[FAILED] Timed out after 300.000s.
   Expected Pod to be running
  </failure>
 </testcase>
 <testcase name="[It] [sig-apps] Job left out" status="skipped" time="0"><skipped message="skipped"/></testcase>
 <testcase name="[ReportAfterSuite] Kubernetes e2e JUnit report" status="passed" time="0"></testcase>
</testsuite></testsuites>
"""

BROKEN = """<testsuites><testsuite>
 <testcase name="[SynchronizedBeforeSuite]" status="failed" time="600">
  <failure>no node is schedulable</failure>
 </testcase>
</testsuite></testsuites>
"""


def read(tmp_path: Path, text: str) -> list[Case]:
    file = tmp_path / "junit_all_01.xml"
    file.write_text(text)
    return list(cases_in(file))


def test_only_tests_that_ran_count(tmp_path: Path) -> None:
    cases = read(tmp_path, REPORT)
    assert [case.name for case in cases] == [
        "[sig-network] DNS should resolve [Conformance]",
        "[sig-node] Pods should run [Conformance]",
    ]
    assert cases[0] == Case(cases[0].name, Outcome.PASSED, 12.5)
    assert failed(cases) == [cases[1]]
    assert cases[1].why == "Timed out after 300.000s. Expected Pod to be running"


def test_a_suite_that_could_not_begin_failed(tmp_path: Path) -> None:
    (case,) = read(tmp_path, BROKEN)
    assert case.outcome is Outcome.FAILED
    assert case.why == "no node is schedulable"


def test_failed_ones_are_named_with_their_reasons(tmp_path: Path) -> None:
    assert described(read(tmp_path, REPORT)) == [
        "FAILED [sig-node] Pods should run [Conformance]",
        "       Timed out after 300.000s. Expected Pod to be running",
        "2 run, 1 passed, 1 failed",
    ]
