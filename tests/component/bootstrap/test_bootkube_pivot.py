"""Waiting for the masters' control plane and making way for it, asked of a real API."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_api import RealApi

from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.assets.ignition_configs import bootstrap_facts
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.assets.serialize import to_yaml
from falsework.bootstrap import pivot
from falsework.bootstrap.apply import apply_all
from falsework.bootstrap.report_progress import report
from falsework.bootstrap.waiting import Wait
from falsework.kube.client import Client
from falsework.kube.resources import (
    CLUSTER_VERSIONS,
    CONFIG_MAPS,
    ETCDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    PODS,
    Resource,
)
from falsework.manifests.release import api_manifests
from falsework.site.load import default_site


@pytest.fixture(scope="module")
def client(real_api: RealApi, tmp_path_factory: pytest.TempPathFactory) -> Client:
    client = real_api.client()
    folder = tmp_path_factory.mktemp("definitions")
    for name, documents in api_manifests().items():
        (folder / name).write_bytes(to_yaml(*documents))
    apply_all(client, folder, print)
    for required in pivot.REQUIRED_PODS:
        ensure(
            client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": required.split("/")[0]}}
        )
    return client


def ensure(client: Client, resource: Resource, body: dict[str, Any]) -> None:
    if not any(item["metadata"]["name"] == body["metadata"]["name"] for item in client.list(resource).items):
        client.create(resource, body)


def facts() -> BootstrapFacts:
    return bootstrap_facts(default_site(), DEFAULT_PAYLOAD)


def make_pod(client: Client, namespace: str, name: str) -> None:
    spec = {"nodeName": "master-0", "containers": [{"name": "it", "image": "registry.falsework.internal/none"}]}
    client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, namespace)


def set_phase(client: Client, namespace: str, name: str, phase: str, ready: str) -> None:
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    client.patch(PODS, name, {"status": status}, namespace, subresource="status")


@pytest.fixture
def pods(client: Client) -> Iterator[dict[str, str]]:
    """Of every kind that is required one, not started."""
    made = {required: f"{required.split('/')[1]}-master-0" for required in pivot.REQUIRED_PODS}
    for required, name in made.items():
        ensure_account(client, required.split("/")[0])
        make_pod(client, required.split("/")[0], name)
    yield made
    for required, name in made.items():
        client.raw("DELETE", f"{PODS.path(required.split('/')[0], name)}?gracePeriodSeconds=0")


def ensure_account(client: Client, namespace: str) -> None:
    """Made by a controller in a whole cluster."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    client.raw("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)


def test_pods_are_told_by_what_they_are_at(client: Client, pods: dict[str, str]) -> None:
    said: list[str] = []
    required = pivot.RequiredPods(client, said.append)
    assert "openshift-kube-apiserver/kube-apiserver" in str(required.missing())
    assert said == [f"Pod Status: {name} Pending" for name in pivot.REQUIRED_PODS]
    said.clear()
    first, *others = pivot.REQUIRED_PODS
    for name in others:
        set_phase(client, name.split("/")[0], pods[name], "Running", "True")
    set_phase(client, first.split("/")[0], pods[first], "Running", "False")
    assert required.missing() == f"no pod Ready of {first}"
    assert f"Pod Status: {first} RunningNotReady" in said
    set_phase(client, first.split("/")[0], pods[first], "Running", "True")
    assert required.missing() is None
    said.clear()
    assert required.missing() is None
    assert not said


def test_pods_that_are_not_there(client: Client) -> None:
    said: list[str] = []
    assert pivot.RequiredPods(client, said.append).missing()
    assert "Pod Status: openshift-kube-apiserver/kube-apiserver DoesNotExist" in said


def set_revisions(client: Client, revisions: tuple[int, ...]) -> None:
    nodes = [{"nodeName": f"master-{number}", "currentRevision": value} for number, value in enumerate(revisions)]
    for resource in pivot.REVISIONED:
        if not client.list(resource).items:
            kind = {"kubeapiservers": "KubeAPIServer", "kubeschedulers": "KubeScheduler"}
            body = {
                "apiVersion": resource.api_version,
                "kind": kind.get(resource.plural, "KubeControllerManager"),
                "metadata": {"name": "cluster"},
                "spec": {"managementState": "Managed"},
            }
            client.create(resource, body)
        client.patch(resource, "cluster", {"status": {"nodeStatuses": nodes}}, subresource="status")


def test_two_masters_must_have_a_revision(client: Client) -> None:
    assert "kubeapiservers on 0" in str(pivot.revisions_missing(client))
    set_revisions(client, (1, 0, 0))
    assert "kubeapiservers on 1" in str(pivot.revisions_missing(client))
    set_revisions(client, (1, 3, 0))
    assert pivot.revisions_missing(client) is None


def test_an_event_is_told_once(client: Client) -> None:
    for _ in range(2):
        pivot.tell(client, "bootstrap-success", "Required control plane pods have been created")
    event = client.get(EVENTS, "bootstrap-success", "kube-system")
    assert event["message"] == "Required control plane pods have been created"


def lease_of(client: Client, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler"},
        "spec": spec,
    }
    client.create(LEASES, body, "kube-system")


def test_only_our_own_lease_is_freed_and_only_when_its_holder_is_gone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        monkeypatch.setitem(pivot.LEASES_TO_FREE, "kube-scheduler", listener.getsockname()[1])
        lease_of(client, "bootstrap_1234")
        assert pivot.lease_held(client, "kube-scheduler", "bootstrap") == "kube-scheduler has not stopped yet"
    assert pivot.lease_held(client, "kube-scheduler", "bootstrap") is None
    assert not client.list(LEASES, "kube-system", fields="metadata.name=kube-scheduler").items
    lease_of(client, "master-0_99")
    assert pivot.lease_held(client, "kube-scheduler", "bootstrap") is None
    assert client.get(LEASES, "kube-scheduler", "kube-system")["spec"]["holderIdentity"] == "master-0_99"
    client.delete(LEASES, "kube-scheduler", "kube-system")


def test_overrides_are_given_back(client: Client) -> None:
    patch = json.dumps({"spec": {"overrides": None}}).encode()
    assert "not found" in str(pivot.overrides_kept(client, patch))
    override = {"group": "", "kind": "Namespace", "name": "x", "namespace": "", "unmanaged": True}
    version = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "6c08777b-262d-4a1e-bf30-58932d942266", "overrides": [override]},
    }
    client.create(CLUSTER_VERSIONS, version)
    for _ in range(2):
        assert pivot.overrides_kept(client, patch) is None
    assert "overrides" not in client.get(CLUSTER_VERSIONS, "version")["spec"]


def test_etcd_must_run_in_the_cluster(client: Client) -> None:
    assert "not found" in str(pivot.etcd_missing(client))
    body = {"apiVersion": "operator.openshift.io/v1", "kind": "Etcd", "metadata": {"name": "cluster"}, "spec": {}}
    client.create(ETCDS, body)
    assert "no condition" in str(pivot.etcd_missing(client))
    for status in ("False", "True"):
        condition = {
            "type": "EtcdRunningInCluster",
            "status": status,
            "reason": "EnoughEtcdMembers",
            "message": "still waiting",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        client.patch(ETCDS, "cluster", {"status": {"conditions": [condition]}}, subresource="status")
        assert pivot.etcd_missing(client) == (None if status == "True" else "EtcdRunningInCluster=False: still waiting")


def test_the_end_is_reported_when_two_masters_serve(client: Client) -> None:
    set_revisions(client, (0, 0, 0))
    said: list[str] = []
    reporting = threading.Thread(target=report, args=(client, facts(), Wait(said.append)), daemon=True)
    reporting.start()
    reporting.join(0.5)
    assert reporting.is_alive()
    assert "two masters" in said[0]
    set_revisions(client, (1, 1, 0))
    reporting.join(10)
    try:
        assert client.get(CONFIG_MAPS, "bootstrap", "kube-system")["data"] == {"status": "complete"}
        report(client, facts(), Wait(said.append))
    finally:
        # Others in this cluster ask whether the bootstrap machine is done.
        client.delete(CONFIG_MAPS, "bootstrap", "kube-system")


def test_an_api_that_cannot_be_asked_is_a_reason(real_api: RealApi, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    config = real_api.kubeconfig_for("admin-kubeconfig-client").read_text()
    path.write_text(config.replace(real_api.url, "https://127.0.0.1:1"))
    nobody = Client.from_kubeconfig(path)
    for reason in (
        pivot.RequiredPods(nobody, print).missing(),
        pivot.revisions_missing(nobody),
        pivot.overrides_kept(nobody, b"{}"),
        pivot.etcd_missing(nobody),
        pivot.lease_held(nobody, "kube-scheduler", "bootstrap"),
    ):
        assert "does not answer" in str(reason)
