"""Leadership against a real API, with short lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from real_api import RealApi

from falsework.kube.client import ApiError
from falsework.kube.resources import LEASES
from falsework.operators.runtime.leader import Leader

LASTS = 1.5


class Candidate:
    def __init__(self, api: RealApi, name: str, identity: str) -> None:
        self.said: list[str] = []
        self.lost = threading.Event()
        self.leader = Leader(
            api.client(),
            "default",
            name,
            identity,
            self.said.append,
            lost=self.lost.set,
            lasts=LASTS,
            renew=0.3,
            retry=0.1,
        )


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
    first, second = Candidate(real_api, name, "first"), Candidate(real_api, name, "second")
    never, soon = threading.Event(), threading.Event()
    assert first.leader.acquire(never)
    threading.Timer(2 * LASTS, soon.set).start()
    assert not second.leader.acquire(soon), "two lead"
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
    gone = Candidate(real_api, name, "gone")
    assert gone.leader._try() is None  # It takes the lease, and then nobody renews it.
    first = Candidate(real_api, name, "first")
    began = time.monotonic()
    assert first.leader.acquire(threading.Event())
    assert time.monotonic() - began >= LASTS - 0.1
    client.patch(LEASES, name, {"spec": {"holderIdentity": "robber"}}, "default")
    assert first.lost.wait(30)
    assert first.leader.lost
    first.leader.release()
    assert client.get(LEASES, name, "default")["spec"]["holderIdentity"] == "robber"
