"""The approver in a crowd, and when things go down around it: an API of its own, which is stopped."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from approver_process import ApproverProcess, running
from csr_maker import CLIENT_USAGES, request_pem, submit
from real_api import RealApi

from eventually import eventually
from falsework.assets.pki import Subject
from falsework.csr.request import CLIENT_SIGNER
from falsework.kube.client import ApiError, Client, Unreachable
from falsework.kube.resources import CSRS, EVENTS
from falsework.release.inventory import Release

JUNK = 1000
QUICK = 60.0
"""Seconds. It is a fraction of one; on a busy host it may be many."""


@pytest.fixture(scope="module")
def api(release: Release, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    with RealApi.in_folder(release, programs, tmp_path_factory.mktemp("crowded-api"), with_signer=True) as api:
        yield api


@pytest.fixture
def approver(api: RealApi, tmp_path: Path) -> Iterator[ApproverProcess]:
    with running(api, tmp_path / "approver") as process:
        yield process
        process.remove_nodes_and_requests()


def client_request(approver: ApproverProcess, machine: str) -> str:
    pem = request_pem(f"system:node:{approver.node(machine)}")
    return submit(approver.joining(machine), pem, CLIENT_SIGNER, CLIENT_USAGES)


def is_approved(approver: ApproverProcess, name: str) -> bool:
    """Also of an API that has found its etcd again only a moment ago."""
    with contextlib.suppress(ApiError, Unreachable):
        return "Approved" in approver.conditions(name)
    return False


def starts(approver: ApproverProcess) -> int:
    return sum(entry["phase"] == "service start" for entry in approver.records())


def submit_junk(client: Client, junk: list[bytes]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda pem: submit(client, pem, CLIENT_SIGNER, CLIENT_USAGES), junk))


def test_a_good_one_among_a_thousand(approver: ApproverProcess) -> None:
    """Junk of three kinds: strangers', forged (which is denied, one by one), and almost right."""
    stranger = request_pem(f"system:node:{approver.node('master-0')}")
    forged = request_pem(f"system:node:{approver.node('master-1')}")
    wrong = request_pem(f"system:node:{approver.node('worker-0')}", ["system:masters"])
    third = JUNK // 3
    submit_junk(approver.as_subject(Subject("someone", ("some",))), [stranger] * (JUNK - 2 * third))
    submit_junk(approver.joining("worker-0"), [wrong] * third)
    with ThreadPoolExecutor(1) as pool:
        flood = pool.submit(submit_junk, approver.joining("worker-0"), [forged] * third)
        time.sleep(1)
        name = client_request(approver, "master-0")
        eventually(lambda: "Approved" in approver.conditions(name), patience=QUICK)
        flood.result()
    other = client_request(approver, "master-2")
    eventually(lambda: "Approved" in approver.conditions(other), patience=QUICK)
    eventually(lambda: sum("Denied" in str(item.get("status")) for item in approver.admin.list(CSRS).items) == third)
    approved = [
        item["metadata"]["name"]
        for item in approver.admin.list(CSRS).items
        if "Approved" in str(item.get("status", {}).get("conditions"))
    ]
    assert sorted(approved) == sorted([name, other])
    events = [event for event in approver.admin.list(EVENTS).items if event["source"].get("component") == "approve-csr"]
    assert 0 < len(events) < 150, "nobody is flooded with events"
    # One that starts now finds all of them at once.
    approver.stop()
    third_name = client_request(approver, "master-1")
    approver.start()
    eventually(lambda: "Approved" in approver.conditions(third_name))


def test_it_survives_the_api(api: RealApi, approver: ApproverProcess) -> None:
    first = client_request(approver, "master-0")
    approver.wait_for_certificate(first)
    api.kill("kube-apiserver")
    time.sleep(1)
    api.start_apiserver()
    second = client_request(approver, "master-1")
    eventually(lambda: "Approved" in approver.conditions(second))
    assert "Waiting for the API" in approver.output
    # etcd too: the API answers, with errors.
    api.kill("etcd")
    time.sleep(1)
    api.start_etcd()
    third: list[str] = []

    def asked() -> bool:
        with contextlib.suppress(ApiError, Unreachable):
            third.append(client_request(approver, "master-2"))
        return bool(third)

    eventually(asked)
    eventually(lambda: is_approved(approver, third[0]))


def test_it_is_killed_and_goes_on(approver: ApproverProcess) -> None:
    for machine in ("master-0", "master-1", "master-2"):
        name = client_request(approver, machine)
        approver.stop()
        approver.start()
        eventually(lambda name=name: "Approved" in approver.conditions(name))  # type: ignore[misc]
    refused = submit(approver.joining("worker-0"), request_pem("nobody"), CLIENT_SIGNER, CLIENT_USAGES)
    eventually(lambda: approver.decision(refused) is not None)
    eventually(lambda: len(approver.events_about(refused)) == 1)
    approver.stop()
    # Not one for each start: those killed above may not have lived to tell.
    earlier = starts(approver)
    approver.forget_decisions()
    approver.start()
    eventually(lambda: starts(approver) == earlier + 1)
    eventually(lambda: approver.decision(refused) is not None)
    # Events are told one after the other: when this one is, all before it have been.
    later = submit(approver.joining("worker-1"), request_pem("nobody"), CLIENT_SIGNER, CLIENT_USAGES)
    eventually(lambda: len(approver.events_about(later)) == 1)
    assert len(approver.events_about(refused)) == 1, "what was told is not told again"


def test_it_ends_when_bootstrapping_is_complete(api: RealApi, approver: ApproverProcess) -> None:
    approver.done.touch()
    assert approver.wait_for_end() == 0
    assert "Bootstrapping is complete" in approver.output
    assert [(entry["phase"], entry.get("result")) for entry in approver.records()] == [
        ("service start", None),
        ("stage start", None),
        ("stage end", "success"),
        ("service end", "success"),
    ]
    name = client_request(approver, "master-0")
    approver.start("--forever")
    eventually(lambda: "Approved" in approver.conditions(name))


def test_it_ends_before_there_is_an_api_too(api: RealApi, approver: ApproverProcess) -> None:
    approver.stop()
    api.kill("kube-apiserver")
    try:
        approver.start()
        eventually(lambda: "connection refused" in approver.output)
        approver.done.touch()
        assert approver.wait_for_end() == 0
    finally:
        api.start_apiserver()
