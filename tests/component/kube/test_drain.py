"""A node is drained against a real API: evictions, budgets, and what stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from real_api import RealApi

from eventually import PATIENCE
from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object
from falsework.kube.drain import Drain, losses
from falsework.kube.resources import (
    NAMESPACES,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICE_ACCOUNTS,
)

NODE = "worker-9.lab.example"
PLACE = "drained"
LONG_ENOUGH_TO_TRY = 10.0
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
DAEMON_SET = {**REPLICA_SET, "kind": "DaemonSet", "name": "net"}
MIRROR = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "x"}


@pytest.fixture
def client(cluster_api: RealApi) -> Iterator[Client]:
    client = cluster_api.client()
    client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
    client.create(
        SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, PLACE
    )
    yield client
    for resource in (PODS, POD_DISRUPTION_BUDGETS, SERVICE_ACCOUNTS):
        client.raw("DELETE", f"{resource.path(PLACE)}?gracePeriodSeconds=0")
    client.raw("DELETE", NAMESPACES.path(name=PLACE))
    # No controller ends what is left of it.
    client.raw("PUT", NAMESPACES.path(name=PLACE, subresource="finalize"), finalized(client.get(NAMESPACES, PLACE)))


def finalized(namespace: Object) -> Object:
    return {**namespace, "spec": {"finalizers": []}}


def pod(client: Client, name: str, owner: Object | None, annotations: dict[str, str] | None = None) -> None:
    """Running and ready, and gone at once when it is to go: no kubelet has to say so."""
    metadata: Object = {"name": name, "labels": {"app": "web"}, "annotations": annotations or {}}
    if owner:
        metadata["ownerReferences"] = [owner]
    spec = {
        "nodeName": NODE,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "c", "image": "i"}],
    }
    client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, PLACE)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    client.patch(PODS, name, {"status": status}, PLACE, subresource="status")


def present(client: Client) -> set[str]:
    return {item["metadata"]["name"] for item in client.list(PODS, PLACE).items}


def budget(client: Client, allowed: int) -> None:
    """What its controller would say."""
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 1,
        "observedGeneration": 1,
    }
    client.patch(POD_DISRUPTION_BUDGETS, "web", {"status": status}, PLACE, subresource="status")


def test_a_budget_is_kept_and_named_and_waited_for(client: Client) -> None:
    pod(client, "web-1", REPLICA_SET)
    pod(client, "net-1", DAEMON_SET)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}
    client.create(POD_DISRUPTION_BUDGETS, body, PLACE)
    budget(client, 0)
    with pytest.raises(FalseworkError, match="could not be drained") as held:
        Drain(client, NODE, lambda _: None, timeout=LONG_ENOUGH_TO_TRY).run()
    assert f"{PLACE}/web-1: The disruption budget web needs 1 healthy pods" in str(held.value.cause)
    assert present(client) == {"web-1", "net-1"}
    told: list[str] = []
    allowing = threading.Event()

    def say(line: str) -> None:
        told.append(line)
        if not allowing.is_set():
            allowing.set()
            budget(client, 1)

    Drain(client, NODE, say, timeout=PATIENCE).run()
    assert "disruption budget web" in told[0]
    assert present(client) == {"net-1"}


def test_what_belongs_to_the_node_stays_and_what_nobody_makes_again_is_told(client: Client) -> None:
    pod(client, "net-1", DAEMON_SET)
    pod(client, "ended", None)
    client.patch(PODS, "ended", {"status": {"phase": "Succeeded"}}, PLACE, subresource="status")
    assert losses(client, NODE) == []
    Drain(client, NODE, lambda _: None, timeout=PATIENCE).run()
    assert present(client) == {"net-1", "ended"}
    pod(client, "alone", None)
    assert losses(client, NODE) == [f"nobody makes the pod {PLACE}/alone again"]
    Drain(client, NODE, lambda _: None, timeout=PATIENCE).run()
    assert present(client) == {"net-1", "ended"}


def test_data_that_is_on_the_node_alone_is_told(client: Client) -> None:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "local": {"path": "/data"},
        "claimRef": {"namespace": PLACE, "name": "db"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "drained-1"}, "spec": spec}
    client.create(PERSISTENT_VOLUMES, body)
    try:
        assert losses(client, NODE) == []
        client.patch(PERSISTENT_VOLUMES, "drained-1", {"status": {"phase": "Bound"}}, subresource="status")
        assert losses(client, NODE) == [f"the data of the claim {PLACE}/db is on this node alone"]
        assert losses(client, "worker-8.lab.example") == []
    finally:
        client.patch(PERSISTENT_VOLUMES, "drained-1", {"metadata": {"finalizers": None}})
        client.delete(PERSISTENT_VOLUMES, "drained-1")
