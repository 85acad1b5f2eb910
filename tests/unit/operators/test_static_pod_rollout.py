"""Which node gets which revision when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from falsework.kube.client import Object
from falsework.kube.resources import KUBE_API_SERVERS
from falsework.operators.static_pod.mirror_pod import MirrorPod
from falsework.operators.static_pod.node_statuses import conditions, not_ready, of_nodes
from falsework.operators.static_pod.operand import Operand
from falsework.operators.static_pod.progress import Progress
from falsework.operators.static_pod.rollout import INSTALLER_FAILED, OPERAND_FAILED, Plan, Seen, next_node, plan

OPERAND = Operand("kube-apiserver", "kube-apiserver", "ns", KUBE_API_SERVERS, settle=5, patience=300)
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def node(name: str, current: int = 0, target: int = 0, **more: Any) -> Object:
    return {"nodeName": name, "currentRevision": current, "targetRevision": target, **more}


def runs(revision: int, *, ready: bool = True, good: float = 60, idle: float = 0, error: str = "") -> Seen:
    return Seen(MirrorPod(revision, ready), revision, error, idle, good)


def planned(nodes: list[Object], latest: int, seen: dict[str, Seen], now: datetime = NOW, gate: str = "") -> Plan:
    return plan(OPERAND, nodes, latest, seen, now, gate)


def targets(made: Plan) -> list[int]:
    return [one["targetRevision"] for one in made.nodes]


def test_the_first_revision_comes_to_all_nodes_at_once_and_the_next_to_one_after_the_other() -> None:
    nodes = [node("a"), node("b"), node("c")]
    made = planned(nodes, 1, {}, gate="never")
    assert targets(made) == [1, 1, 1], "the gate is for what runs"
    assert nodes == [node("a"), node("b"), node("c")], "what it was given stays"
    made = planned(made.nodes, 1, {"a": runs(1), "b": runs(1, ready=False), "c": runs(1)})
    assert [(one["currentRevision"], one["targetRevision"]) for one in made.nodes] == [(1, 0), (0, 1), (1, 0)]
    everywhere = {name: runs(1) for name in "abc"}
    made = planned(made.nodes, 1, everywhere)
    assert targets(made) == [0, 0, 0]
    assert planned(made.nodes, 1, everywhere).happened == [], "where all is done nothing happens"

    order = []
    for _ in range(3):
        made = planned(made.nodes, 2, everywhere)
        (moving,) = (one["nodeName"] for one in made.nodes if one["targetRevision"])
        assert made.starts == moving
        assert targets(planned(made.nodes, 2, everywhere)) == targets(made), "nobody else while it moves"
        order.append(moving)
        everywhere[moving] = runs(2)
    made = planned(made.nodes, 2, everywhere)
    assert order == ["a", "b", "c"]
    assert [one["currentRevision"] for one in made.nodes] == [2, 2, 2]


def test_one_that_works_is_not_touched_while_another_does_not_or_has_only_just_begun_to() -> None:
    nodes = [node("a", 1), node("b", 1), node("c", 2)]
    good = {"a": runs(1), "b": runs(1), "c": runs(2)}
    made = planned(nodes, 2, {**good, "c": runs(2, good=2)})
    assert (targets(made), made.again) == ([0, 0, 0], 3)
    assert made.waits == "pod/kube-apiserver-c has not been ready for 5 s"
    made = planned(nodes, 2, {**good, "c": runs(2, ready=False)})
    assert (targets(made), made.waits) == ([0, 0, 0], "pod/kube-apiserver-c is not ready")
    made = planned(nodes, 2, good, gate="no quorum")
    assert (targets(made), made.waits) == ([0, 0, 0], "no quorum")
    # One that does not work has nothing to lose.
    made = planned(nodes, 2, {**good, "b": runs(1, ready=False), "c": runs(2, ready=False)}, gate="no quorum")
    assert targets(made) == [0, 2, 0]


def test_a_newer_revision_takes_the_place_of_one_that_is_on_its_way() -> None:
    assert targets(planned([node("a", 1, 2), node("b", 1), node("c", 0, 2)], 3, {})) == [3, 0, 3]


def test_a_node_whose_past_was_forgotten_is_not_restarted_with_all_the_others() -> None:
    made = planned([node("a"), node("b"), node("c")], 8, {name: runs(7) for name in "abc"})
    assert [one["currentRevision"] for one in made.nodes] == [7, 7, 7]
    assert sorted(targets(made)) == [0, 0, 8]
    made = planned([node("a"), node("b")], 8, {name: runs(8) for name in "ab"})
    assert [one["currentRevision"] for one in made.nodes] == [8, 8]
    assert targets(made) == [0, 0], "what is current is never touched"


def test_a_revision_that_does_not_come_up_is_taken_back_and_reaches_no_other() -> None:
    seen = {"a": runs(2, ready=False, idle=299), "b": runs(1), "c": runs(1)}
    made = planned([node("a", 1, 2), node("b", 1), node("c", 1)], 2, seen)
    assert (targets(made), made.again) == ([2, 0, 0], 1)
    broken = MirrorPod(2, False, troubles=("container crashed",))
    made = planned(made.nodes, 2, {**seen, "a": Seen(broken, 2, idle=300)})
    assert made.nodes[0] == node(
        "a",
        1,
        1,
        lastFailedRevision=2,
        lastFailedTime="2030-01-01T00:00:00Z",
        lastFailedReason=OPERAND_FAILED,
        lastFailedCount=1,
        lastFallbackCount=1,
        lastFailedRevisionErrors=["pod/kube-apiserver-a is not ready at revision 2", "container crashed"],
    )
    assert targets(made) == [1, 0, 0]
    _, _, degraded = conditions(made.nodes, 2)
    assert (degraded["status"], degraded["reason"]) == ("True", "InstallerPodFailed")
    assert degraded["message"].startswith("node a failed on revision 2: pod/kube-apiserver-a is not ready")

    back = {"a": runs(1), "b": runs(1), "c": runs(1)}
    made = planned(made.nodes, 2, back)
    assert targets(made) == [0, 0, 0]
    assert made.again == 600
    assert made.waits == "revision 2 failed on a and is tried again there at 2030-01-01T00:10:00Z"
    later = planned(made.nodes, 2, back, NOW + timedelta(minutes=10))
    assert targets(later) == [2, 0, 0]
    again = planned(later.nodes, 2, {**back, "a": Seen(broken, 2, idle=300)}, NOW + timedelta(minutes=20))
    assert again.nodes[0]["lastFailedCount"] == 2
    rest = planned(again.nodes, 2, back, NOW + timedelta(minutes=20))
    assert rest.again == 1200
    # A newer one is another matter, and a node that has it has failed at nothing.
    newer = planned(rest.nodes, 3, back, NOW + timedelta(minutes=21))
    assert targets(newer) == [3, 0, 0]
    done = planned(newer.nodes, 3, {**back, "a": runs(3)}, NOW)
    assert done.nodes[0] == node("a", 3)


def test_what_could_not_be_written_is_tried_again_soon() -> None:
    failed = {"a": runs(1), "b": runs(1)}
    failed["a"] = Seen(MirrorPod(1, True), 2, "the disk is full", 1, 60)
    made = planned([node("a", 1, 2), node("b", 1)], 2, failed)
    assert made.nodes[0]["lastFailedReason"] == INSTALLER_FAILED
    assert made.nodes[0]["lastFailedRevisionErrors"] == ["the disk is full"]
    assert "lastFallbackCount" not in made.nodes[0]
    made = planned(made.nodes, 2, {"a": runs(1), "b": runs(1)})
    assert (targets(made), made.again) == ([0, 0], 10)


def test_a_node_with_nothing_to_go_back_to_keeps_what_it_has() -> None:
    stuck = {"a": runs(1, ready=False, idle=301)}
    made = planned([node("a", 0, 1)], 1, stuck)
    assert targets(made) == [1]
    assert made.nodes[0]["lastFailedCount"] == 1
    assert len(made.happened) == 1
    same = planned(made.nodes, 1, stuck)
    assert (same.nodes, same.happened) == (made.nodes, []), "told once"
    assert planned(made.nodes, 1, {"a": runs(1)}).nodes == [node("a", 1)]


def test_a_new_node_gets_what_works_elsewhere() -> None:
    failed: Any = {
        "lastFailedRevision": 2,
        "lastFailedTime": "2030-01-01T00:00:00Z",
        "lastFailedReason": OPERAND_FAILED,
    }
    made = planned([node("a", 1, **failed), node("b", 1), node("new")], 2, {"a": runs(1), "b": runs(1)})
    assert targets(made) == [0, 0, 1]


def test_whose_turn_it_is() -> None:
    nodes = [node("fine", 3), node("old", 2), node("other", 4), node("broken", 4), node("worse", 4), node("gone", 4)]
    seen = {
        "fine": runs(3),
        "old": runs(2),
        "other": runs(3),
        "broken": runs(4, ready=False),
        "worse": runs(3, ready=False),
    }
    order = []
    while nodes:
        order.append(next_node(nodes, seen)["nodeName"])
        nodes = [one for one in nodes if one["nodeName"] != order[-1]]
    assert order == ["gone", "worse", "broken", "other", "old", "fine"]


def test_progress_is_what_has_not_been_seen_before() -> None:
    times = iter([0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
    progress = Progress(lambda: next(times))
    report = {"data": {"revision": "2", "error": ""}}
    assert progress.look(node("a", 1, 2), None, None).idle == 0
    assert progress.look(node("a", 1, 2), None, report).idle == 0, "it was written"
    started = MirrorPod(2, True, frozenset({"pod", "server started"}))
    assert progress.look(node("a", 1, 2), started, report).idle == 0
    crashed = MirrorPod(2, False, frozenset({"pod"}))
    assert (progress.look(node("a", 1, 2), crashed, report).idle) == 10
    look = progress.look(node("a", 1, 2), started, report)
    assert (look.idle, look.good) == (20, 0), "to start again is none"
    assert progress.look(node("a", 1, 1), started, report).idle == 0, "another target, another time"


def test_the_list_of_masters_follows_the_nodes() -> None:
    def master(name: str, uid: str, ready: str = "True") -> Object:
        condition = {"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": "no network"}
        return {"metadata": {"name": name, "uid": uid}, "status": {"conditions": [condition]}}

    known = [{**node("a", 3), "nodeUID": "1"}, {**node("b", 3), "nodeUID": "2"}, {**node("c", 3), "nodeUID": "3"}]
    found = of_nodes(known, [master("c", "3"), master("a", "9"), master("d", "4")])
    assert [(one["nodeName"], one["nodeUID"], one["currentRevision"]) for one in found] == [
        ("a", "9", 0),
        ("c", "3", 3),
        ("d", "4", 0),
    ]
    assert not_ready([master("a", "1")])["status"] == "False"
    said = not_ready([master("a", "1"), master("b", "2", "False")])
    assert said["status"] == "True"
    assert said["message"] == 'The master nodes not ready: node "b" not ready because KubeletNotReady (no network)'


@pytest.mark.parametrize(
    ("nodes", "latest", "said"),
    [
        ([], 0, [("False", "there are no master nodes"), ("False", ""), ("False", None)]),
        (
            [node("a"), node("b"), node("c")],
            1,
            [
                ("False", "0 nodes are active; 3 nodes are at revision 0; 0 nodes have achieved new revision 1"),
                ("True", "3 nodes are at revision 0; 0 nodes have achieved new revision 1"),
                ("False", None),
            ],
        ),
        (
            [node("a", 2), node("b", 1), node("c", 1)],
            2,
            [
                ("True", "3 nodes are active; 2 nodes are at revision 1; 1 nodes are at revision 2"),
                ("True", "2 nodes are at revision 1; 1 nodes are at revision 2"),
                ("False", None),
            ],
        ),
    ],
)
def test_how_far_it_is_in_openshifts_words(
    nodes: list[Object], latest: int, said: list[tuple[str, str | None]]
) -> None:
    found = conditions(nodes, latest)
    assert [one["type"] for one in found] == [
        "StaticPodsAvailable",
        "NodeInstallerProgressing",
        "NodeInstallerDegraded",
    ]
    assert [(one["status"], one.get("message")) for one in found] == [
        (status, message or None) for status, message in said
    ]
