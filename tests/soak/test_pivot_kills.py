"""What goes wrong while the control plane forms: each time the same healthy end, and nothing written is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from many_keys import keys_missing, write_keys

from falsework.checks.control_plane import REQUIRED_OPERATORS
from falsework.machines.provider import Power
from falsework.stages.catalogue import STAGES
from falsework.stages.events import read_events
from lab_under_test import LabUnderTest, lab_up_to

LIMIT = 900.0
SEED = 7
LONG = tuple(stage.name for stage in STAGES if stage.name not in ("preflight", "release", "assets"))
"""Stages that do something on a warm host."""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LabUnderTest]:
    with lab_up_to("helper", tmp_path) as lab:
        yield lab


def until(what: str, holds: Callable[[], bool], patience: float = 300) -> None:
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def begun(lab: LabUnderTest, stage: str) -> bool:
    events = [event for event in read_events(lab.lab.events) if event.get("stage") == stage and "state" in event]
    return any(event["state"] in ("started", "skipped") for event in events)


def assert_healthy(lab: LabUnderTest) -> None:
    assert lab.machines.state("bootstrap").power is Power.ABSENT
    members = json.loads(
        lab.inside("master-0", "sh", "-c", "crictl exec $(crictl ps -q --name etcd) etcdctl member list -w json")
    )["members"]
    assert [member for member in members if member.get("isLearner")] == []
    assert len(members) == 3
    operators = json.loads(lab.run("kubectl", "get", "co", "-o", "json"))["items"]
    available = {
        operator["metadata"]["name"]
        for operator in operators
        for entry in operator.get("status", {}).get("conditions", ())
        if (entry["type"], entry["status"]) == ("Available", "True")
    }
    assert available >= set(REQUIRED_OPERATORS)
    lab.run("status")


def test_up_killed_once_in_every_stage(lab: LabUnderTest) -> None:
    chance = random.Random(SEED)  # noqa: S311 - the same moments in every run
    for stage in LONG:
        going = lab.start("up")
        until(stage, lambda: begun(lab, stage) or going.poll() is not None)  # noqa: B023 - used before it changes
        time.sleep(chance.uniform(0.0, 2.0))
        if going.poll() is None:
            os.killpg(going.pid, signal.SIGKILL)
        going.wait()
    lab.run("up", limit=LIMIT)
    assert_healthy(lab)


def grown_with(lab: LabUnderTest, disturb: Callable[[], None]) -> None:
    """Bring the cluster up with something going wrong on the way, a thousand keys having been written before."""
    lab.run("machine", "start", "bootstrap")
    lab.until_ready()
    write_keys(lab)
    going = lab.start("up")
    try:
        disturb()
        assert going.wait(LIMIT) == 0
    finally:
        if going.poll() is None:
            os.killpg(going.pid, signal.SIGKILL)
            going.wait()
    assert_healthy(lab)
    assert keys_missing(lab) == []


def learners(lab: LabUnderTest) -> int:
    """Members of etcd that do not vote yet, as the bootstrap's etcd has them."""
    command = "crictl exec $(crictl ps -q --name '^etcd$') etcdctl member list -w json"
    members = json.loads(lab.inside("bootstrap", "sh", "-c", command))["members"]
    return sum(bool(member.get("isLearner")) for member in members)


def test_a_master_killed_while_etcd_grows(lab: LabUnderTest) -> None:
    def disturb() -> None:
        until("etcd begins to grow", lambda: begun(lab, "etcd"))
        until("a member is added", lambda: learners(lab) > 0)
        lab.machines.kill("master-1")
        time.sleep(2)
        lab.machines.start("master-1")

    grown_with(lab, disturb)


def test_the_etcd_operator_killed_between_add_and_promote(lab: LabUnderTest) -> None:
    def disturb() -> None:
        until("etcd begins to grow", lambda: begun(lab, "etcd"))
        until("a member is added", lambda: learners(lab) > 0)
        lab.run(
            *("kubectl", "delete", "pod", "-n", "openshift-etcd-operator", "--all"),
            *("--grace-period=0", "--force", "--wait=false"),
        )

    grown_with(lab, disturb)


def test_the_bootstrap_loses_power_half_way(lab: LabUnderTest) -> None:
    def disturb() -> None:
        until("the masters join", lambda: begun(lab, "etcd"))
        lab.machines.kill("bootstrap")
        time.sleep(1)
        lab.machines.start("bootstrap")

    grown_with(lab, disturb)
