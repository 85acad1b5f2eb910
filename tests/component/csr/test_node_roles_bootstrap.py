"""Roles given by the bootstrap machine's approver, to Nodes as kubelets make them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from approver_process import ApproverProcess, running
from real_api import RealApi

from eventually import eventually
from falsework.kube.client import Object
from falsework.kube.resources import NODES
from falsework.node_roles.rules import CONTROL_PLANE, MASTER, WORKER

CONFIG = "machineconfiguration.openshift.io/currentConfig"


@pytest.fixture
def approver(real_api: RealApi, tmp_path: Path) -> Iterator[ApproverProcess]:
    with running(real_api, tmp_path / "approver") as process:
        yield process
        process.remove_nodes_and_requests()


def register(approver: ApproverProcess, name: str) -> str:
    """As the machine's kubelet does, with nothing a kubelet may not say."""
    node = approver.node(name)
    taints = [{"key": MASTER, "effect": "NoSchedule"}] if name.startswith("master") else []
    metadata = {"name": node, "labels": {"kubernetes.io/hostname": node}}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}}
    approver.as_node(name).create(NODES, body)
    return node


def test_a_node_has_its_role_at_once(approver: ApproverProcess) -> None:
    def labels(name: str) -> dict[str, str]:
        found: Object = approver.admin.get(NODES, name)["metadata"]
        return dict(found["labels"])

    took = []
    for name in ("master-0", "master-1", "master-2"):
        node = register(approver, name)
        began = time.monotonic()
        eventually(lambda node=node: MASTER in labels(node))  # type: ignore[misc]
        took.append(time.monotonic() - began)
        assert CONTROL_PLANE in labels(node)
        assert WORKER not in labels(node)
    worker = register(approver, "worker-0")
    eventually(lambda: WORKER in labels(worker))
    assert MASTER not in labels(worker)
    # Nobody has slept on it: the shortest of our pauses that come round by themselves is a second.
    assert min(took) < 1, took
    annotations = approver.admin.get(NODES, worker)["metadata"]["annotations"]
    assert annotations[CONFIG] == "rendered"


def test_a_role_that_is_taken_away_comes_back(approver: ApproverProcess) -> None:
    node = register(approver, "master-0")
    eventually(lambda: MASTER in approver.admin.get(NODES, node)["metadata"]["labels"])
    approver.admin.patch(NODES, node, {"metadata": {"labels": {MASTER: None}}})
    eventually(lambda: MASTER in approver.admin.get(NODES, node)["metadata"]["labels"])
