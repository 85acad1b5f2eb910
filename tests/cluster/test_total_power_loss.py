"""All machines lose power. Last of all: others would have to wait until everything is back."""

from __future__ import annotations

from falsework.machines.provider import Power
from lab_under_test import LabUnderTest
from raised_cluster import MASTERS, UP_LIMIT, WORKERS


def test_the_cluster_comes_back_after_all_lost_power(lab: LabUnderTest) -> None:
    before = lab.run("kubectl", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    lab.run("machine", "kill", *MASTERS, *WORKERS)
    lab.run("up", limit=UP_LIMIT)
    assert lab.run("kubectl", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}") == before
    assert lab.machines.state("bootstrap").power is Power.ABSENT
