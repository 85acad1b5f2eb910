"""Leadership against a real API, with short lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from real_api import RealApi

from falsework.kube.client import ApiError
from falsework.kube.resources import LEASES
from falsework.operators.runtime.leader import Leader

SHORT, LONG = 1.5, 60.0
"""Seconds. Who is to keep a lease gets a long one, whoever else keeps the host busy meanwhile."""
PATIENCE = 60.0


class Candidate:
    def __init__(
        self,
        api: RealApi,
        name: str,
        identity: str,
        lasts: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.said: list[str] = []
        self.lost = threading.Event()
        self.leader = Leader(
            api.client(),
            "default",
            name,
            identity,
            self.said.append,
            lost=self.lost.set,
            lasts=lasts,
            renew=0.3,
            retry=0.1,
            clock=clock,
        )


class SomeLooks(threading.Event):
    """Told to stop after some looks. Between two of them the lease is renewed, and most of its life passes."""

    def __init__(self, api: RealApi, name: str, looks: int) -> None:
        super().__init__()
        self.now = 0.0
        self._client = api.client()
        self._name = name
        self._left = looks

    def clock(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        before, deadline = self._renewed(), time.monotonic() + PATIENCE
        while self._renewed() == before:
            assert time.monotonic() < deadline, "nobody renews it"
            time.sleep(timeout or 0.0)
        self.now += 0.7 * LONG
        self._left -= 1
        if self._left == 0:
            self.set()
        return self.is_set()

    def _renewed(self) -> str:
        return str(self._client.get(LEASES, self._name, "default")["spec"]["renewTime"])


@pytest.fixture
def name(real_api: RealApi, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.replace("_", "-")
    yield name
    try:
        real_api.client().delete(LEASES, name, "default")
    except ApiError as error:
        if not error.is_missing:
            raise


def test_a_lease_is_kept_and_given_back(real_api: RealApi, name: str) -> None:
    never, soon = threading.Event(), SomeLooks(real_api, name, 4)
    first, second = Candidate(real_api, name, "first", LONG), Candidate(real_api, name, "second", LONG, soon.clock)
    assert first.leader.acquire(never)
    assert not second.leader.acquire(soon), "two lead"
    assert soon.now > 2 * LONG
    assert len([line for line in second.said if "Waiting" in line]) == 1
    first.leader.release()
    # It need not run out.
    assert not real_api.client().get(LEASES, name, "default")["spec"].get("holderIdentity")
    assert second.leader.acquire(never)
    assert not first.lost.is_set()
    second.leader.release()
    spec = real_api.client().get(LEASES, name, "default")["spec"]
    assert spec["leaseTransitions"] == 2
    assert not spec.get("holderIdentity")


def test_one_that_vanished_is_followed_and_one_that_was_robbed_stops(real_api: RealApi, name: str) -> None:
    client = real_api.client()
    gone = Candidate(real_api, name, "gone", SHORT)
    assert gone.leader._try() is None  # It takes the lease, and then nobody renews it.
    first = Candidate(real_api, name, "first", SHORT)
    began = time.monotonic()
    assert first.leader.acquire(threading.Event())
    assert time.monotonic() - began >= SHORT - 0.1
    client.patch(LEASES, name, {"spec": {"holderIdentity": "robber"}}, "default")
    assert first.lost.wait(PATIENCE)
    assert first.leader.lost
    first.leader.release()
    assert client.get(LEASES, name, "default")["spec"]["holderIdentity"] == "robber"
