"""What the ClusterOperator says, made of what the controllers say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from falsework.operators.runtime.cluster_operator import new_status, union
from falsework.operators.runtime.conditions import condition, status_of, timestamp, updated

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def sub(kind: str, status: bool | None, reason: str = "", message: str = "", age: float = 0.0) -> dict[str, Any]:
    since = timestamp(NOW - timedelta(seconds=age))
    return updated([], [condition(kind, status, reason, message)], since)[0]


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("Available", "Unknown", "NoData"),
        ("Progressing", "False", "AsExpected"),
        ("Degraded", "False", "AsExpected"),
        ("Upgradeable", "True", "AsExpected"),
    ],
)
def test_without_a_word_nothing_is_wrong_but_nothing_is_available(kind: str, status: str, reason: str) -> None:
    said, again = union(kind, [sub("SomethingElse", True)], NOW)
    assert (said["status"], said["reason"], again) == (status, reason, None)


def test_one_bad_word_is_enough() -> None:
    conditions = [sub("PodsAvailable", True), sub("MembersAvailable", False, "NoQuorum", "1 of 3")]
    said, _ = union("Available", conditions, NOW)
    assert said == condition("Available", False, "Members_NoQuorum", "MembersAvailable: 1 of 3")


def test_what_is_not_known_is_not_available() -> None:
    said, _ = union("Available", [sub("PodsAvailable", True), sub("MembersAvailable", None)], NOW)
    assert said["status"] == "Unknown"
    assert union("Available", [sub("MembersAvailable", None), sub("PodsAvailable", False)], NOW)[0]["status"] == "False"


def test_several_are_sorted_and_joined() -> None:
    conditions = [
        sub("BProgressing", True, "Two", "second\nthird"),
        sub("AProgressing", True, "One", "first"),
        sub("CProgressing", False, "Fine", "not this"),
    ]
    said, _ = union("Progressing", conditions, NOW)
    assert said["reason"] == "A_One::B_Two"
    assert said["message"] == "AProgressing: first\nBProgressing: second\nBProgressing: third"


def test_good_messages_are_shown_too() -> None:
    said, _ = union("Available", [sub("PodsAvailable", True, message="3 nodes are active")], NOW)
    assert said == condition("Available", True, "AsExpected", "PodsAvailable: 3 nodes are active")


def test_the_word_itself_gives_the_reason() -> None:
    said, _ = union("Available", [sub("Available", True, "Removed", "gone"), sub("NodesAvailable", True, "Fine")], NOW)
    assert said == condition("Available", True, "Removed", "Available: gone")
    said, _ = union("Progressing", [sub("Progressing", True, "Rolling"), sub("NodesProgressing", True, "Slow")], NOW)
    assert said["reason"] == "Nodes_Slow::Rolling"


def test_degraded_counts_only_when_it_lasts() -> None:
    said, again = union("Degraded", [sub("XDegraded", True, "Error", "oh", age=30), sub("YDegraded", True)], NOW)
    assert (said["status"], said["message"]) == ("False", "XDegraded: oh")
    assert again == 90
    said, again = union("Degraded", [sub("XDegraded", True, "Error", "oh", age=120)], NOW)
    assert said == condition("Degraded", True, "X_Error", "XDegraded: oh")
    assert again is None


def operator(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "cluster"}, "status": {"conditions": list(conditions)}}


def versions(status: dict[str, Any]) -> list[str]:
    return [entry["version"] for entry in status.get("versions") or []]


def test_the_version_comes_with_the_operand() -> None:
    old = {"relatedObjects": [{"name": "kept"}]}
    status, _ = new_status(old, operator(sub("PodsAvailable", False)), "1", NOW)
    assert versions(status) == []
    assert status["relatedObjects"] == [{"name": "kept"}]
    status, _ = new_status(status, operator(sub("PodsAvailable", True), sub("PodsProgressing", True)), "1", NOW)
    assert versions(status) == ["1"]
    # A newer one is only said to be there when all of it is.
    status, _ = new_status(status, operator(sub("PodsAvailable", True), sub("PodsProgressing", True)), "2", NOW)
    assert versions(status) == ["1"]
    status, _ = new_status(status, operator(sub("PodsAvailable", True), sub("PodsProgressing", False)), "2", NOW)
    assert versions(status) == ["2"]
    status, _ = new_status(status, operator(sub("PodsAvailable", False)), "2", NOW)
    assert versions(status) == ["2"]


def test_conditions_of_others_stay() -> None:
    old = {"conditions": [sub("EvaluationConditionsDetected", False)]}
    status, again = new_status(old, operator(sub("XDegraded", True, age=100)), "1", NOW)
    assert {entry["type"] for entry in status["conditions"]} == {
        "EvaluationConditionsDetected",
        "Available",
        "Progressing",
        "Degraded",
        "Upgradeable",
    }
    assert status_of(status["conditions"], "Degraded") is False
    assert again == 20
