"""When the first API servers may be started on the masters."""

from __future__ import annotations

import pytest

from falsework.etcd.gate import PATIENCE, EtcdGate, Wait, is_enough


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_fewer_than_two_members_are_waited_for_without_end() -> None:
    clock = Clock()
    gate = EtcdGate(clock)
    for live in (0, 1, 1):
        assert gate.wait(live, 3) == Wait(f"has less than two live etcd endpoints: {live}")
        clock.now += 1000


def test_all_of_them_are_enough_at_once() -> None:
    assert EtcdGate(Clock()).wait(3, 3) is None
    assert EtcdGate(Clock()).wait(1, 1) is None
    assert EtcdGate(Clock()).wait(5, 5) is None


def test_the_last_ones_are_waited_for_but_not_for_long() -> None:
    clock = Clock()
    gate = EtcdGate(clock)
    assert gate.wait(2, 3) == Wait("2 of 3 etcd members are on masters", PATIENCE)
    clock.now += 5
    assert gate.wait(2, 3) == Wait("2 of 3 etcd members are on masters", PATIENCE - 5)
    clock.now += PATIENCE
    assert gate.wait(2, 3) is None


def test_the_patience_begins_anew_when_one_is_lost() -> None:
    clock = Clock()
    gate = EtcdGate(clock)
    gate.wait(2, 3)
    clock.now += PATIENCE - 1
    gate.wait(1, 3)
    assert gate.wait(2, 3) == Wait("2 of 3 etcd members are on masters", PATIENCE)


@pytest.mark.parametrize(
    ("live", "replicas", "enough"), [(0, 1, False), (1, 1, True), (1, 2, False), (2, 3, True), (1, 3, False)]
)
def test_one_master_needs_one_member_and_more_masters_two(live: int, replicas: int, enough: bool) -> None:
    assert is_enough(live, replicas) is enough
