"""Certificates of a cluster seventeen hours old, renewed with the operators' own rights on a real API."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from operator_process import VERSION, account_of
from real_api import RealApi

from falsework.assets.ignition_configs import bootstrap_facts
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.assets.pki import is_signed_by, load_certificates, utc_now
from falsework.bootstrap.cluster_secrets import cluster_secrets
from falsework.bootstrap.disk import Disk
from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import CONFIG_MAPS, KUBE_API_SERVERS, SECRETS, Resource
from falsework.manifests.objects import config_map
from falsework.manifests.operators import kube_apiserver, kube_controller_manager
from falsework.operators.certificates.rotation import Rotation
from falsework.operators.certificates.table import Table
from falsework.operators.kube_apiserver import certificates as of_apiserver
from falsework.operators.kube_controller_manager import certificates as of_controller_manager
from falsework.operators.runtime.events import Events
from falsework.operators.runtime.log import Log
from ignited import ignited

APISERVER, APISERVER_OPERATOR = "openshift-kube-apiserver", "openshift-kube-apiserver-operator"
MANAGER, MANAGER_OPERATOR = "openshift-kube-controller-manager", "openshift-kube-controller-manager-operator"
MANAGED = "openshift-config-managed"
LATER = utc_now() + timedelta(hours=17)


@pytest.fixture
def client(cluster_api: RealApi, tmp_path: Path) -> Iterator[Client]:
    """The administrator of a cluster that has just been given its certificates."""
    client = cluster_api.client()
    root = ignited(tmp_path / "root", tmp_path / "assets")
    facts = bootstrap_facts(cluster_api.site, DEFAULT_PAYLOAD)
    made = [body for bodies in cluster_secrets(Disk(root), facts).values() for body in bodies]
    for body in made:
        metadata = body["metadata"]
        client.patch(client.resource_of(body), metadata["name"], body, metadata["namespace"], kind=APPLY)
    yield client
    roll_out(client, {})
    for namespace in {body["metadata"]["namespace"] for body in made} | {MANAGED}:
        for resource in (CONFIG_MAPS, SECRETS):
            client.raw("DELETE", resource.path(namespace))


def roll_out(client: Client, revisions: dict[str, int]) -> None:
    """What runs on which master: a revision's copies are of the moment it was made."""
    for revision in set(revisions.values()):
        for name in ("client-ca", "kubelet-serving-ca", "aggregator-client-ca"):
            with contextlib.suppress(ApiError):
                client.create(CONFIG_MAPS, config_map(f"{name}-{revision}", APISERVER, data(client, name)))
    nodes = [{"nodeName": node, "currentRevision": revision} for node, revision in revisions.items()]
    live = client.get(KUBE_API_SERVERS, "cluster")
    client.replace(KUBE_API_SERVERS, {**live, "status": {"nodeStatuses": nodes}}, "status")


def data(client: Client, name: str, namespace: str = APISERVER, resource: Resource = CONFIG_MAPS) -> Object:
    found: Object = client.get(resource, name, namespace)["data"]
    return found


def shown(client: Client, name: str, namespace: str = APISERVER) -> bytes:
    return base64.b64decode(data(client, name, namespace, SECRETS)["tls.crt"])


def rotation(api: RealApi, module: ModuleType, table: Table, now: datetime = LATER) -> Rotation:
    """With the rights of the operator."""
    manifests = module.manifests(VERSION, DEFAULT_PAYLOAD.images)
    client = Client.from_kubeconfig(account_of(api, manifests))
    return Rotation(client, Events(client, "operator", "default", Log("operator")), table, now)


def versions(client: Client, namespace: str) -> dict[str, str]:
    found = [item["metadata"] for kind in (CONFIG_MAPS, SECRETS) for item in client.list(kind, namespace).items]
    return {entry["name"]: entry["resourceVersion"] for entry in found}


def test_fresh_certificates_are_left_alone(cluster_api: RealApi, client: Client) -> None:
    before = {namespace: versions(client, namespace) for namespace in (APISERVER, APISERVER_OPERATOR, MANAGER)}
    for module, of_operator in ((kube_controller_manager, of_controller_manager), (kube_apiserver, of_apiserver)):
        wait = rotation(cluster_api, module, of_operator.TABLE, utc_now()).look()
        assert timedelta(hours=15).total_seconds() < wait < timedelta(hours=17).total_seconds()
    assert {namespace: versions(client, namespace) for namespace in before} == before
    signer = shown(client, "csr-signer", MANAGER)
    assert data(client, "csr-controller-ca", MANAGED)["ca-bundle.crt"].encode().strip() == signer.strip()


def test_day_long_certificates_and_signers_are_replaced_step_by_step(cluster_api: RealApi, client: Client) -> None:
    apiserver = rotation(cluster_api, kube_apiserver, of_apiserver.TABLE)
    manager = rotation(cluster_api, kube_controller_manager, of_controller_manager.TABLE)
    names = ("localhost-serving-cert-certkey", "kubelet-client", "aggregator-client")
    localhost, kubelet, aggregator = (shown(client, name) for name in names)
    signer = shown(client, "csr-signer", MANAGER)
    roll_out(client, {"master-0": 1, "master-1": 1})

    # First whom to trust: the successors sign nothing yet. What lasts is left alone.
    manager.look()
    apiserver.look()
    assert shown(client, "localhost-serving-cert-certkey") != localhost
    assert shown(client, "kubelet-client") == kubelet
    assert shown(client, "aggregator-client") == aggregator
    assert shown(client, "csr-signer", MANAGER) == signer
    successor = shown(client, "csr-signer", MANAGER_OPERATOR)
    for bundle in ("client-ca", "kubelet-serving-ca"):
        trusted = data(client, bundle)["ca-bundle.crt"].encode()
        assert signer.strip() in trusted
        assert successor.strip() in trusted

    # One master still runs without it: nothing happens, however often it is looked at.
    roll_out(client, {"master-0": 2, "master-1": 1})
    before = {name: shown(client, name) for name in names}
    manager.look()
    apiserver.look()
    assert shown(client, "csr-signer", MANAGER) == signer
    assert before == {name: shown(client, name) for name in names}

    # Everybody trusts them: they take over, and what they sign is made anew.
    roll_out(client, {"master-0": 2, "master-1": 2})
    manager.look()
    assert shown(client, "csr-signer", MANAGER) == successor
    apiserver.look()
    (authority,) = load_certificates(shown(client, "aggregator-client-signer", APISERVER_OPERATOR))
    (made,) = load_certificates(shown(client, "aggregator-client"))
    assert is_signed_by(made, authority)
    assert made.not_valid_after_utc > LATER + timedelta(days=29)

    # And then there is nothing to do for long, and nobody waits.
    assert manager.look() == 0.0
    assert manager.look() > timedelta(days=30).total_seconds()
    apiserver.look()
    assert apiserver.look() > timedelta(days=15).total_seconds()
    left = {item["metadata"]["name"] for item in client.list(SECRETS, APISERVER_OPERATOR).items}
    assert "next-aggregator-client-signer" not in left
    assert client.list(SECRETS, MANAGER_OPERATOR).items == []
