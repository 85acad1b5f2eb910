from pathlib import Path

import pytest

from falsework.conformance.run import Phase, Programs, Selection, Tally, command, names_in, phases
from falsework.errors import UsageError

LISTING = """The following spec names can be used with 'ginkgo run --focus/skip':
    ../kubernetes/test/e2e/network/dns.go:54: [sig-network] DNS should provide DNS for the cluster [Conformance]
    ../kubernetes/test/e2e/network/dns.go:94: [sig-network] DNS should provide DNS for something else

"""
PROGRAMS = Programs(Path("/lab/e2e.test"), Path("/lab/ginkgo"), Path("/lab/kubectl"))


def words(phase: Phase, selection: Selection) -> list[str]:
    return [str(word) for word in command(PROGRAMS, phase, selection, Path("/results"))]


def test_only_conformance_tests_are_listed() -> None:
    assert names_in(LISTING) == ["[sig-network] DNS should provide DNS for the cluster [Conformance]"]


def test_what_is_skipped_goes_before_what_is_in_focus() -> None:
    selection = Selection.checked("DNS|Pods", "slow")
    assert selection.takes("[sig-network] DNS answers")
    assert not selection.takes("[sig-network] DNS is slow")
    assert not selection.takes("[sig-apps] Job")
    assert Selection().takes("anything")


def test_a_broken_expression_is_refused_before_anything_is_built() -> None:
    with pytest.raises(UsageError, match=r"--skip"):
        Selection.checked("DNS", "[")


def test_tests_that_disturb_others_run_alone_after_them() -> None:
    assert [phase.processes for phase in phases(1)] == [1]
    first, last = phases(4)
    assert (first.processes, first.labels) == (4, "Conformance && !Serial")
    assert (last.processes, last.labels) == (1, "Conformance && Serial")


def test_our_words_come_before_those_of_the_tests() -> None:
    (phase,) = phases(1)
    given = words(phase, Selection(focus="DNS"))
    own, theirs = given[: given.index("--")], given[given.index("--") + 1 :]
    assert own[0] == "/lab/ginkgo"
    assert own[-1] == "/lab/e2e.test"
    assert "--focus=DNS" in own
    assert not any(word.startswith("--skip") for word in own)
    assert "--kubectl-path=/lab/kubectl" in theirs
    assert "--report-prefix=all_" in theirs


def test_tests_are_counted_as_they_end() -> None:
    tally = Tally()
    for line in (
        "Will run 8 of 7579 specs",
        "[SynchronizedBeforeSuite] PASSED [0.000 seconds]",
        "• [0.812 seconds]",
        "  • [1.000 seconds] is said by a test",
        "• [FAILED] [301.044 seconds]",
    ):
        tally = tally.after(line)
    assert tally == Tally(ended=2, failed=1, of=8)
    assert str(tally) == "2 of 8 ended, 1 failed"
