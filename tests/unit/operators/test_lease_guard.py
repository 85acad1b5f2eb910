"""Whoever cannot renew the lease stops in time, even if the API only keeps it waiting."""

from __future__ import annotations

import threading
import time
from typing import cast

import pytest

from falsework.kube.client import ApiError, Client, Object
from falsework.operators.runtime.leader import Leader, own_identity

LASTS = 0.6


class Stuck:
    """An API that takes a lease, and answers nothing more."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.has_answered = False

    def get(self, *_: object) -> Object:
        raise ApiError("none yet", status=404)

    def create(self, _resource: object, body: Object, _namespace: str) -> Object:
        return body

    def replace(self, *_: object) -> Object:
        self.answers.wait(60)
        self.has_answered = True
        raise ApiError("too late", status=500)


def test_a_renewal_that_is_not_answered_is_a_lease_that_is_lost() -> None:
    api, lost, said = Stuck(), threading.Event(), list[str]()
    leader = Leader(
        cast("Client", api), "here", "lock", "me", said.append, lost=lost.set, lasts=LASTS, renew=0.05, retry=0.05
    )
    began = time.monotonic()
    assert leader.acquire(threading.Event())
    assert lost.wait(60)
    assert time.monotonic() - began > LASTS / 2
    assert leader.lost
    assert said[-1] == "Lost the lease here/lock"
    # Nothing is left to give back, and nobody waits for an API that does not answer.
    leader.release()
    assert not api.has_answered
    api.answers.set()


def test_a_pod_is_told_apart_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAME", raising=False)
    alone = own_identity()
    monkeypatch.setenv("POD_NAME", "etcd-operator-5d9c7-x2x4z")
    assert own_identity() == "etcd-operator-5d9c7-x2x4z" != alone
