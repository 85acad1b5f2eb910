"""Quorum first: which members are added, promoted and removed, whatever the cluster looks like."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.etcd.members import Member, View, quorum, spare, survives
from falsework.etcd.settings import BOOTSTRAP_MEMBER, Speed, Timing, client_url, peer_url, timing_of
from falsework.operators.etcd.membership import (
    Add,
    Masters,
    Promote,
    Remove,
    may_promote,
    may_remove,
    may_restart_one,
    plan,
)
from falsework.operators.etcd.teardown import judge

NODES = {f"master-{number}": f"10.0.0.{number + 1}" for number in range(3)}
BOOTSTRAP = Member(9, BOOTSTRAP_MEMBER, (peer_url("10.0.0.9"),), (client_url("10.0.0.9"),))


def member(number: int, *, learner: bool = False, started: bool = True) -> Member:
    name, address = f"master-{number}", f"10.0.0.{number + 1}"
    return Member(
        number + 1, name if started else "", (peer_url(address),), (client_url(address),) if started else (), learner
    )


def ill(*members: Member) -> dict[int, str]:
    return {each.id: "it is ill" for each in members}


VOTERS = tuple(member(number) for number in range(3))


def test_who_waits_is_added_together_with_the_others() -> None:
    steps = plan(View((BOOTSTRAP,)), Masters(NODES, NODES)).steps
    assert steps == tuple(Add(name, peer_url(address)) for name, address in NODES.items())
    # Nobody is added who does not wait, or is listed already.
    assert plan(View((BOOTSTRAP,)), Masters(NODES)).steps == ()
    view = View((BOOTSTRAP, member(0, learner=True, started=False)), ill(member(0)))
    assert plan(view, Masters(NODES, ["master-0"])).steps == ()


def test_nobody_is_added_while_one_may_be_starting() -> None:
    view = View((BOOTSTRAP, member(0, learner=True, started=False)), ill(member(0)))
    found = plan(view, Masters(NODES, ["master-1"]), starting=[1])
    assert (found.steps, "must have started" in found.waits) == ((), True)
    assert plan(view, Masters(NODES, ["master-1"])).steps == (Add("master-1", peer_url("10.0.0.2")),)


def test_nothing_is_added_or_promoted_while_a_voter_is_ill() -> None:
    view = View((BOOTSTRAP, VOTERS[0], member(1, learner=True)), ill(VOTERS[0]))
    found = plan(view, Masters(NODES, ["master-2"]))
    assert found.steps == ()
    assert "master-0 (it is ill)" in found.waits


def test_a_learner_that_is_well_is_promoted_and_one_that_is_not_waits() -> None:
    learners = (member(1, learner=True), member(2, learner=True))
    view = View((BOOTSTRAP, VOTERS[0], *learners), ill(learners[1]))
    assert plan(view, Masters(NODES)).steps == (Promote(learners[0]),)


@pytest.mark.parametrize(
    ("stale", "why"),
    [
        (Member(7, "", (peer_url("10.0.0.77"),), is_learner=True), "no master has its address"),
        (Member(7, "", (peer_url("10.0.0.77"),)), "no master has its address"),
        (Member(7, "master-2", (peer_url("10.0.0.77"),), is_learner=True), "another address"),
    ],
)
def test_what_was_left_behind_goes_first(stale: Member, why: str) -> None:
    view = View((*VOTERS[:2], BOOTSTRAP, stale), {7: "it has not started yet"})
    (step,) = plan(view, Masters(NODES, ["master-2"])).steps
    assert isinstance(step, Remove)
    assert (step.member, why in step.why) == (stale, True)


def test_a_member_whose_data_is_gone_is_removed_only_if_quorum_survives() -> None:
    gone = Masters(NODES, destroyed=["master-0"])
    assert plan(View((BOOTSTRAP, *VOTERS), ill(VOTERS[0])), gone).steps == (Remove(VOTERS[0], "its data is gone"),)
    # Two of three are ill: one more step, and nothing works.
    found = plan(View(VOTERS, ill(*VOTERS[:2])), gone)
    assert (found.steps, "quorum would not survive" in found.waits) == ((), True)
    # What was added again and has not started yet is another member.
    again = member(0, learner=True, started=False)
    assert plan(View((BOOTSTRAP, *VOTERS[1:], again), ill(again)), gone).steps == ()


def test_a_voter_nobody_knows_is_left_to_a_person() -> None:
    stranger = Member(7, "etcd-of-somebody", (peer_url("10.0.0.77"),), (client_url("10.0.0.77"),))
    assert plan(View((*VOTERS, stranger)), Masters(NODES)).steps == ()


@settings(deadline=None)
@given(st.integers(1, 7), st.data())
def test_no_step_costs_the_slack_there_was(count: int, data: st.DataObject) -> None:
    voters = tuple(Member(number, f"m{number}", (f"p{number}",), (f"c{number}",)) for number in range(count))
    sick = data.draw(st.sets(st.sampled_from(voters)))
    view = View(voters, ill(*sick))
    learner = Member(99, "learner", ("p99",), ("c99",), is_learner=True)
    if may_promote(replace(view, members=(*voters, learner)), learner):
        after = spare(count + 1, count - len(sick) + 1)
        assert after >= 0
        assert after >= min(1, view.spare)
    for each in voters:
        if may_remove(view, each):
            healthy = len([other for other in voters if other not in sick and other != each])
            assert healthy >= quorum(count - 1)
            assert spare(count - 1, healthy) >= min(1, view.spare)


def test_what_survives() -> None:
    assert [quorum(voters) for voters in range(1, 6)] == [1, 2, 2, 3, 3]
    assert spare(4, 4) == 1
    assert survives(0, 0)
    assert not survives(1, 0)
    assert not survives(-1, -1)


def test_a_member_may_be_restarted_only_with_one_to_spare() -> None:
    assert may_restart_one(View(VOTERS)) is None
    assert "2 of 3 etcd members are healthy" in str(may_restart_one(View(VOTERS, ill(VOTERS[0]))))
    assert may_restart_one(View(VOTERS[:1]), needed=1) is None
    assert "lose its quorum" in str(may_restart_one(View((BOOTSTRAP, *VOTERS), ill(BOOTSTRAP))))


def test_the_bootstrap_goes_last_and_only_from_four_that_are_well() -> None:
    whole = View((BOOTSTRAP, *VOTERS))
    assert judge(whole, "HighlyAvailable").missing is None
    assert judge(View(VOTERS), "HighlyAvailable").bootstrap is None
    assert "3 of 4" in str(judge(View((BOOTSTRAP, *VOTERS[:2])), "HighlyAvailable").missing)
    learns = View((BOOTSTRAP, *VOTERS[:2], member(2, learner=True)))
    assert "3 of 4" in str(judge(learns, "HighlyAvailable").missing)
    assert "master-1" in str(judge(replace(whole, faults=ill(VOTERS[1])), "HighlyAvailable").missing)
    # That it is the one that is ill is one reason more.
    assert judge(replace(whole, faults=ill(BOOTSTRAP)), "HighlyAvailable").missing is None
    assert judge(View((BOOTSTRAP, VOTERS[0])), "SingleReplica").missing is None
    assert replace(whole, faults=ill(VOTERS[0])).successor_of(BOOTSTRAP) == VOTERS[1]


def test_all_members_are_equally_patient() -> None:
    assert timing_of(Speed.SLOWER) == Timing(500, 2500)
    assert timing_of("") == timing_of("Standard") == Timing(100, 1000)
