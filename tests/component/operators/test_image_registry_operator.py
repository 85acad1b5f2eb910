"""The image registry operator on a real API, with exactly its rights. Deployments and DaemonSets are played."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from operator_process import POD, VERSION, OperatorProcess, account_of, operator_process, until
from real_api import RealApi

from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    IMAGE_CONFIGS,
    IMAGE_REGISTRIES,
    INGRESSES,
    PERSISTENT_VOLUME_CLAIMS,
    ROUTES,
    SECRETS,
    SERVICES,
    Resource,
)
from falsework.manifests.objects import config_map, named
from falsework.manifests.operators import image_registry
from falsework.manifests.operators.image_registry import NAMESPACE
from falsework.operators.image_registry.node_registries import FILE, parsed
from falsework.operators.runtime.conditions import status_of

IMAGES = {name: f"registry.example/{name}:1" for name in ("falsework", "pause", "registry")}
CLAIM = "image-registry-storage"
HOST = "default-route-openshift-image-registry.apps.example"
REMOVED = {"managementState": "Removed", "replicas": 1}


def names(client: Client, resource: Resource) -> set[str]:
    return {body["metadata"]["name"] for body in client.list(resource, NAMESPACE).items}


def ask(client: Client, **spec: Any) -> None:
    client.patch(IMAGE_REGISTRIES, "cluster", {"spec": spec})


def said(client: Client, kind: str) -> tuple[bool | None, str]:
    conditions = client.get(IMAGE_REGISTRIES, "cluster")["status"]["conditions"]
    entry = next(entry for entry in conditions if entry["type"] == kind)
    return status_of(conditions, kind), str(entry.get("reason", ""))


def roll_out(client: Client, resource: Resource, name: str, *counts: str) -> None:
    """What the controllers of Kubernetes say when all pods are ready."""
    live = client.get(resource, name, NAMESPACE)
    status = dict.fromkeys(counts, 1) | {"observedGeneration": live["metadata"]["generation"]}
    client.replace(resource, {**live, "status": status}, "status")


def all_pods_run(client: Client) -> None:
    roll_out(client, DEPLOYMENTS, "image-registry", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    all_nodes_know(client)


def all_nodes_know(client: Client) -> None:
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    roll_out(client, DAEMON_SETS, "node-ca", *counts, "numberReady", "numberMisscheduled")


def secret(client: Client, name: str) -> dict[str, bytes]:
    data = client.get(SECRETS, name, NAMESPACE)["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}


def nodes_are_told(client: Client) -> dict[str, str]:
    return {one.host: one.url for one in parsed(secret(client, "node-ca-registries")[FILE])}


def put(client: Client, body: Object) -> None:
    metadata = body["metadata"]
    client.patch(client.resource_of(body), metadata["name"], body, metadata.get("namespace", ""), kind=APPLY)


@pytest.fixture
def client(cluster_api: RealApi) -> Iterator[Client]:
    """Of the administrator of a cluster as it is after its installation; and as it was, afterwards."""
    client = cluster_api.client()
    put(client, named("config.openshift.io/v1", "ClusterOperator", "image-registry", spec={}))
    put(client, named("config.openshift.io/v1", "Ingress", "cluster", spec={"domain": "apps.example"}))
    put(client, config_map("default-ingress-cert", "openshift-config-managed", {"ca-bundle.crt": "ingress"}))
    ask(client, **REMOVED, storage=None, defaultRoute=None)
    yield client
    client.delete(CLUSTER_OPERATORS, "image-registry")
    client.delete(INGRESSES, "cluster")
    client.delete(CONFIG_MAPS, "default-ingress-cert", "openshift-config-managed")
    for claim in names(client, PERSISTENT_VOLUME_CLAIMS):
        client.patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": {"finalizers": None}}, NAMESPACE)
        client.delete(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE)
    ask(client, **REMOVED, storage=None, defaultRoute=None)


def test_a_registry_comes_and_goes_as_its_config_says(cluster_api: RealApi, client: Client, tmp_path: Path) -> None:
    account = account_of(cluster_api, image_registry.manifests(VERSION, IMAGES))
    words = [f"--image={name}={reference}" for name, reference in IMAGES.items()]
    program = [*POD, image_registry.NAME]
    with operator_process(cluster_api, program, account, tmp_path / "log", *words) as operator:
        _as_installed(client, operator)
        _in_its_pod(client, operator)
        _kept_as_it_is(client, operator)
        _in_a_volume(client, operator)
        _removed(client, operator)
        assert operator.stop() == 0
    log = (tmp_path / "log").read_text()
    assert "Forbidden" not in log
    assert "a mistake in the operator" not in log


def _as_installed(client: Client, operator: OperatorProcess) -> None:
    def reported() -> bool:
        status = client.get(CLUSTER_OPERATORS, "image-registry")["status"]
        entry = next(entry for entry in status["conditions"] if entry["type"] == "Available")
        is_said = (entry["status"], entry["reason"], entry["message"]) == (
            *("True", "Removed", "Available: The registry is removed"),
        )
        return is_said and bool(status["versions"] == [{"name": "operator", "version": VERSION}])

    until(reported, operator)
    assert said(client, "Removed") == (True, "Removed")
    assert names(client, DEPLOYMENTS) == names(client, DAEMON_SETS) == set()

    ask(client, managementState="Managed")
    until(lambda: said(client, "Degraded") == (True, "StorageNotConfigured"), operator)
    assert names(client, DEPLOYMENTS) == set()


def _in_its_pod(client: Client, operator: OperatorProcess) -> None:
    ask(client, storage={"emptyDir": {}})
    until(lambda: client.get(DEPLOYMENTS, "image-registry", NAMESPACE), operator)
    until(lambda: said(client, "StorageExists")[0], operator)
    until(lambda: said(client, "NodeCADaemonProgressing") == (True, "Progressing"), operator)
    until(lambda: said(client, "Available") == (False, "NoReplicasAvailable"), operator)
    all_pods_run(client)
    until(lambda: said(client, "Available") == (True, "Ready"), operator)
    until(lambda: said(client, "Progressing") == (False, "Ready"), operator)
    status = client.get(IMAGE_REGISTRIES, "cluster")["status"]
    assert (status["storage"], status["readyReplicas"]) == ({"emptyDir": {}}, 1)
    internal = "image-registry.openshift-image-registry.svc:5000"
    until(lambda: client.get(IMAGE_CONFIGS, "cluster")["status"]["internalRegistryHostname"] == internal, operator)
    address = client.get(SERVICES, "image-registry", NAMESPACE)["spec"]["clusterIP"]
    assert nodes_are_told(client)[internal] == f"https://{address}:5000"
    login = secret(client, "image-registry-login")
    assert internal in json.loads(login[".dockerconfigjson"])["auths"]
    assert login["password"].decode() not in operator.log.read_text()


def _kept_as_it_is(client: Client, operator: OperatorProcess) -> None:
    """Somebody's changes are put right, and his password is taken."""
    client.delete(SERVICES, "image-registry", NAMESPACE)
    until(lambda: client.get(SERVICES, "image-registry", NAMESPACE), operator)
    before = client.get(DEPLOYMENTS, "image-registry", NAMESPACE)["spec"]["template"]["metadata"]["annotations"]
    chosen = base64.b64encode(b"chosen").decode()
    client.patch(SECRETS, "image-registry-login", {"data": {"password": chosen}}, NAMESPACE)

    def rolls() -> bool:
        template = client.get(DEPLOYMENTS, "image-registry", NAMESPACE)["spec"]["template"]
        return bool(template["metadata"]["annotations"] != before)

    until(rolls, operator)
    expected = f"Basic {base64.b64encode(b'registry:chosen').decode()}"
    until(lambda: expected in secret(client, "node-ca-registries")[FILE].decode(), operator)
    client.patch(DEPLOYMENTS, "image-registry", {"spec": {"replicas": 3}}, NAMESPACE)
    until(lambda: client.get(DEPLOYMENTS, "image-registry", NAMESPACE)["spec"]["replicas"] == 1, operator)


def _in_a_volume(client: Client, operator: OperatorProcess) -> None:
    ask(client, storage={"emptyDir": None, "pvc": {"claim": "mine"}})
    until(lambda: said(client, "Degraded") == (True, "StorageNotFound"), operator)
    ask(client, storage={"pvc": {"claim": ""}})
    until(lambda: client.get(PERSISTENT_VOLUME_CLAIMS, CLAIM, NAMESPACE), operator)
    until(lambda: client.get(IMAGE_REGISTRIES, "cluster")["status"]["storage"] == {"pvc": {"claim": CLAIM}}, operator)
    assert client.get(DEPLOYMENTS, "image-registry", NAMESPACE)["spec"]["strategy"]["type"] == "Recreate"
    assert client.get(IMAGE_REGISTRIES, "cluster")["status"]["storageManaged"] is True

    def says_what_it_waits_for() -> bool:
        conditions = client.get(IMAGE_REGISTRIES, "cluster")["status"]["conditions"]
        return any(f"claim {NAMESPACE}/{CLAIM} is Pending" in entry.get("message", "") for entry in conditions)

    until(says_what_it_waits_for, operator)
    ask(client, defaultRoute=True)
    until(lambda: nodes_are_told(client).get(HOST) == f"https://{HOST}", operator)
    until(lambda: client.get(ROUTES, "default-route", NAMESPACE)["spec"]["host"] == HOST, operator)
    tls = client.get(ROUTES, "default-route", NAMESPACE)["spec"]["tls"]
    assert tls["termination"] == "reencrypt"
    known = client.get(CONFIG_MAPS, "image-registry-certificates", NAMESPACE)["data"]
    assert tls["destinationCACertificate"] in known.values()


def _removed(client: Client, operator: OperatorProcess) -> None:
    """Nodes forget it before the last of it goes; what is stored stays."""
    ask(client, managementState="Removed")
    until(lambda: nodes_are_told(client) == {}, operator)
    until(lambda: said(client, "Progressing") == (True, "ForgettingRegistry"), operator)
    assert names(client, DEPLOYMENTS) == names(client, SERVICES) == set()
    all_nodes_know(client)
    until(lambda: said(client, "Removed") == (True, "Removed"), operator)
    until(lambda: not names(client, DAEMON_SETS) and not names(client, SECRETS), operator)
    assert names(client, PERSISTENT_VOLUME_CLAIMS) == {CLAIM}
    with pytest.raises(ApiError):
        client.get(ROUTES, "default-route", NAMESPACE)
    assert "internalRegistryHostname" not in client.get(IMAGE_CONFIGS, "cluster")["status"]
    assert "storage" not in client.get(IMAGE_REGISTRIES, "cluster")["status"]
