"""How soon the operator looks again: a learner is promoted as soon as etcd lets it."""

from __future__ import annotations

from typing import cast

import pytest

from falsework.etcd.gateway import EtcdRefusal, Gateway
from falsework.etcd.members import Member, View
from falsework.etcd.settings import BOOTSTRAP_MEMBER, client_url, peer_url
from falsework.operators.etcd.membership import Masters
from falsework.operators.etcd.scaling import Outcome, Scaling

NODES = {f"master-{number}": f"10.0.0.{number + 1}" for number in range(3)}


class Played:
    """A cluster in which all masters learn."""

    def __init__(self) -> None:
        self.now = 0.0
        self.faults: dict[int, str] = {}
        self.behind: set[int] = set()
        self.learners = {
            number: Member(number, name, (peer_url(address),), (client_url(address),), is_learner=True)
            for number, (name, address) in enumerate(NODES.items(), 1)
        }
        self.scaling = Scaling(cast("Gateway", self), lambda *_: None, lambda: self.now)

    def look(self) -> View:
        voters = [Member(9, BOOTSTRAP_MEMBER, (peer_url("10.0.0.9"),), (client_url("10.0.0.9"),))]
        voters += [
            Member(number, name, (peer_url(address),), (client_url(address),))
            for number, (name, address) in enumerate(NODES.items(), 1)
            if number not in self.learners
        ]
        return View((*voters, *self.learners.values()), self.faults)

    def promote(self, member: Member) -> None:
        if member.id in self.behind:
            raise EtcdRefusal(
                "etcd refuses", cause="etcdserver: can only promote a learner member which is in sync with leader"
            )
        del self.learners[member.id]

    def run(self) -> Outcome:
        return self.scaling.run(Masters(NODES))


@pytest.fixture
def played() -> Played:
    return Played()


def test_one_promotion_after_the_other_at_once(played: Played) -> None:
    played.run()
    assert played.learners == {}


def test_one_that_is_behind_is_tried_again_soon_and_holds_no_other_up(played: Played) -> None:
    played.behind = {1}
    outcome = played.run()
    assert set(played.learners) == {1}
    assert (outcome.pause, "in sync" in outcome.waits) == (0.1, True)


def test_a_learner_that_does_not_answer_yet_is_asked_often_but_not_for_ever(played: Played) -> None:
    played.faults = {2: "nobody answers"}
    assert played.run().pause == 0.1
    played.now = 59.0
    assert played.run().pause == 0.1
    played.now = 61.0
    assert played.run().pause == 1.0
    assert set(played.learners) == {2}
