"""The operators of the control plane's programs, each with exactly its rights, on a real API. Masters, their kubelets
and the node daemon are played by the test."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from operator_process import VERSION, OperatorProcess, account_of, operator_process, until
from real_api import RealApi

from falsework.assets import objects
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.kube.client import APPLY, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    INFRASTRUCTURES,
    NETWORKS,
    NODES,
    PODS,
    SECRETS,
)
from falsework.manifests.objects import named
from falsework.manifests.operators import kube_apiserver, kube_controller_manager, kube_scheduler
from falsework.operators.kube_apiserver.main import OPERAND as APISERVER
from falsework.operators.kube_controller_manager.main import OPERAND as CONTROLLER_MANAGER
from falsework.operators.kube_scheduler.main import OPERAND as SCHEDULER
from falsework.operators.static_pod.operand import Operand

MASTERS = ("master-0.example", "master-1.example", "master-2.example")
OPERATORS: dict[str, tuple[Operand, ModuleType]] = {
    "kube-apiserver": (APISERVER, kube_apiserver),
    "kube-controller-manager": (CONTROLLER_MANAGER, kube_controller_manager),
    "kube-scheduler": (SCHEDULER, kube_scheduler),
}


@pytest.fixture(scope="module")
def client(cluster_api: RealApi) -> Iterator[Client]:
    """Of the administrator of a site with three masters, which is described and has nothing yet."""
    client, site = cluster_api.client(), cluster_api.site
    networking = site.networking
    made = [
        objects.network(networking.cluster_networks, networking.service_networks, networking.network_type),
        objects.infrastructure("id", site.api_host, site.api_int_host, 3, 2),
        objects.config_map("cluster-config-v1", "kube-system", {"install-config": "controlPlane: {replicas: 3}"}),
        *(named("config.openshift.io/v1", "ClusterOperator", name, spec={}) for name in OPERATORS),
    ]
    for body in made:
        put(client, body)
    infrastructure = client.get(INFRASTRUCTURES, "cluster")
    client.replace(INFRASTRUCTURES, {**infrastructure, "status": made[1]["status"]}, "status")
    for name in MASTERS:
        node = named("v1", "Node", name)
        node["metadata"]["labels"] = {"node-role.kubernetes.io/master": ""}
        put(client, node)
    yield client
    for operand, _ in OPERATORS.values():
        forget(client, operand)
    for name in MASTERS:
        client.delete(NODES, name)
    for name in OPERATORS:
        client.delete(CLUSTER_OPERATORS, name)
    client.delete(NETWORKS, "cluster")
    client.delete(INFRASTRUCTURES, "cluster")
    client.delete(CONFIG_MAPS, "cluster-config-v1", "kube-system")


def put(client: Client, body: Object) -> None:
    metadata = body["metadata"]
    client.patch(client.resource_of(body), metadata["name"], body, metadata.get("namespace", ""), kind=APPLY)


def forget(client: Client, operand: Operand) -> None:
    """The operator's object as every cluster has it at first, and nothing of the operand."""
    old = client.get(operand.resource, "cluster")
    client.delete(operand.resource, "cluster")
    put(client, {key: old[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "cluster"}})
    for resource in (CONFIG_MAPS, SECRETS, PODS):
        client.raw("DELETE", f"{resource.path(operand.namespace)}?gracePeriodSeconds=0")


@contextlib.contextmanager
def operator(name: str, api: RealApi, folder: Path) -> Iterator[OperatorProcess]:
    _, module = OPERATORS[name]
    kubeconfig = account_of(api, module.manifests(VERSION, DEFAULT_PAYLOAD.images))
    program = ["-m", "falsework.in_machine", f"{name}-operator"]
    images = [f"--image={image}={DEFAULT_PAYLOAD.images[image]}" for image in (name, "pause")]
    with operator_process(api, program, kubeconfig, folder / "log", *images) as process:
        yield process


def give_inputs(client: Client, operand: Operand) -> None:
    """What the bootstrap gives: that there is something is all the operator looks at."""
    made = set(operand.all_config_maps) - {
        operand.pod_config_map,
        "controller-manager-kubeconfig",
        "scheduler-kubeconfig",
    }
    for name in made:
        put(client, objects.config_map(name, operand.namespace, {"ca-bundle.crt": "certificates"}))
    for name in operand.secrets:
        put(client, objects.secret(name, operand.namespace, {"tls.key": b"key"}))


def give_etcd(client: Client, *addresses: str) -> None:
    put(client, objects.config_map("etcd-endpoints", "openshift-etcd", {f"id{a}": a for a in addresses}))


def status(client: Client, operand: Operand) -> Object:
    found: Object = client.get(operand.resource, "cluster").get("status") or {}
    return found


def said(client: Client, operand: Operand, kind: str) -> Object:
    return next(entry for entry in status(client, operand)["conditions"] if entry["type"] == kind)


def is_available(client: Client, name: str) -> bool:
    conditions = client.get(CLUSTER_OPERATORS, name)["status"]["conditions"]
    return any(entry["type"] == "Available" and entry["status"] == "True" for entry in conditions)


def pod_of(client: Client, operand: Operand) -> Object:
    data = client.get(CONFIG_MAPS, operand.pod_config_map, operand.namespace)["data"]
    pod: Object = json.loads(data["pod.yaml"])
    return pod


def install(client: Client, operand: Operand, node: str) -> int:
    """What the daemon and the kubelet do: the revision the node is told, as a mirror pod that is Ready."""
    entry = next(entry for entry in status(client, operand)["nodeStatuses"] if entry["nodeName"] == node)
    revision = int(entry["targetRevision"])
    assert revision, entry
    body = named("v1", "Pod", operand.pod_on(node), operand.namespace)
    body["metadata"] |= {"labels": {"revision": str(revision)}, "annotations": {"kubernetes.io/config.mirror": "it"}}
    body["spec"] = {"nodeName": node, "hostNetwork": True, "containers": [{"name": "it", "image": "it"}]}
    put(client, body)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    client.patch(PODS, operand.pod_on(node), {"status": ready}, operand.namespace, subresource="status")
    return revision


def targets(client: Client, operand: Operand) -> list[int]:
    return [int(entry.get("targetRevision") or 0) for entry in status(client, operand)["nodeStatuses"]]


def currents(client: Client, operand: Operand) -> list[int]:
    return [int(entry.get("currentRevision") or 0) for entry in status(client, operand)["nodeStatuses"]]


def test_the_api_servers_come_with_etcd_and_change_one_by_one(
    cluster_api: RealApi, client: Client, tmp_path: Path
) -> None:
    with operator("kube-apiserver", cluster_api, tmp_path) as process:
        give_etcd(client, "10.0.0.1")
        give_inputs(client, APISERVER)
        until(lambda: said(client, APISERVER, "TargetConfigControllerProgressing")["status"] == "True", process)
        assert (
            "less than two live etcd endpoints"
            in said(client, APISERVER, "TargetConfigControllerProgressing")["message"]
        )
        assert not status(client, APISERVER).get("latestAvailableRevision")

        # With two members it waits for the third, so that no second revision is needed.
        give_etcd(client, "10.0.0.1", "10.0.0.2")
        until(lambda: "2 of 3" in said(client, APISERVER, "TargetConfigControllerProgressing")["message"], process)
        give_etcd(client, "10.0.0.1", "10.0.0.2", "10.0.0.3")
        until(lambda: targets(client, APISERVER) == [1, 1, 1], process)
        servers = "https://localhost:2379,https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379"
        assert f"--etcd-servers={servers}" in pod_of(client, APISERVER)["spec"]["containers"][0]["command"]
        for node in MASTERS:
            install(client, APISERVER, node)
        until(lambda: currents(client, APISERVER) == [1, 1, 1], process)
        until(lambda: is_available(client, "kube-apiserver"), process)

        # A renewed certificate is a new revision, and reaches one node at first.
        put(client, objects.secret("aggregator-client", APISERVER.namespace, {"tls.key": b"renewed"}))
        until(lambda: sorted(targets(client, APISERVER)) == [0, 0, 2], process)
        copy = client.get(SECRETS, "aggregator-client-2", APISERVER.namespace)
        assert base64.b64decode(copy["data"]["tls.key"]) == b"renewed"

        # Without etcd nothing is changed: what runs is kept.
        give_etcd(client, "10.0.0.1")
        client.delete(CONFIG_MAPS, "etcd-endpoints", "openshift-etcd")
        until(lambda: process.said("less than two live etcd endpoints"), process)
        assert f"--etcd-servers={servers}" in pod_of(client, APISERVER)["spec"]["containers"][0]["command"]
        assert process.stop() == 0


@pytest.mark.parametrize("name", ["kube-controller-manager", "kube-scheduler"])
def test_clients_of_the_api_start_at_once_and_what_is_theirs_is_put_right(
    name: str, cluster_api: RealApi, client: Client, tmp_path: Path
) -> None:
    operand, _ = OPERATORS[name]
    with operator(name, cluster_api, tmp_path) as process:
        give_inputs(client, operand)
        until(lambda: targets(client, operand) == [1, 1, 1], process)
        kubeconfig = next(entry for entry in operand.config_maps if entry.endswith("kubeconfig"))
        made = json.loads(client.get(CONFIG_MAPS, kubeconfig, operand.namespace)["data"]["kubeconfig"])
        assert made["clusters"][0]["cluster"]["server"] == f"https://{cluster_api.site.api_int_host}:6443"
        install(client, operand, MASTERS[0])
        until(lambda: is_available(client, name), process)
        until(lambda: currents(client, operand)[0] == 1, process)

        # What somebody breaks before it is used is put right, and is no new revision.
        good = pod_of(client, operand)
        client.patch(CONFIG_MAPS, operand.pod_config_map, {"data": {"pod.yaml": "{}", "more": "x"}}, operand.namespace)
        until(lambda: pod_of(client, operand) == good, process)
        client.delete(CONFIG_MAPS, kubeconfig, operand.namespace)
        until(lambda: client.get(CONFIG_MAPS, kubeconfig, operand.namespace), process)
        assert list(client.get(CONFIG_MAPS, operand.pod_config_map, operand.namespace)["data"]) == ["pod.yaml"]
        assert process.stop() == 0
    assert status(client, operand)["latestAvailableRevision"] == 1
