"""Waiting for the masters' control plane and making way for it, asked of a real API."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_api import RealApi

from eventually import PATIENCE, eventually
from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.assets.ignition_configs import bootstrap_facts
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.bootstrap import pivot
from falsework.bootstrap.report_progress import report
from falsework.bootstrap.waiting import Wait
from falsework.kube.client import APPLY, ApiError, Client
from falsework.kube.cluster import Cluster
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
from falsework.manifests.objects import named
from falsework.site.load import default_site


@pytest.fixture(scope="module")
def client(cluster_api: RealApi) -> Client:
    client = cluster_api.client()
    for required in pivot.REQUIRED_PODS:
        name = required.split("/")[0]
        client.patch(NAMESPACES, name, named("v1", "Namespace", name), kind=APPLY)
    return client


@contextlib.contextmanager
def absent(client: Client, resource: Resource, name: str) -> Iterator[None]:
    """Not there when the block begins, whatever others have done in this cluster; and afterwards as it was."""
    try:
        before = client.get(resource, name)
    except ApiError:
        before = None
    client.raw("DELETE", resource.path(name=name))
    try:
        yield
    finally:
        client.raw("DELETE", resource.path(name=name))
        if before is not None:
            made = client.create(resource, {**before, "metadata": {"name": name}})
            if status := before.get("status"):
                client.replace(resource, {**made, "status": status}, "status")


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


@pytest.fixture
def cluster(client: Client) -> Iterator[Cluster]:
    with contextlib.closing(Cluster(client)) as cluster:
        yield cluster


def test_pods_are_told_by_what_they_are_at(client: Client, cluster: Cluster, pods: dict[str, str]) -> None:
    said: list[str] = []
    required = pivot.RequiredPods(cluster, said.append)
    assert "openshift-kube-apiserver/kube-apiserver" in str(required.missing())
    assert said == [f"Pod Status: {name} Pending" for name in pivot.REQUIRED_PODS]
    said.clear()
    first, *others = pivot.REQUIRED_PODS
    for name in others:
        set_phase(client, name.split("/")[0], pods[name], "Running", "True")
    set_phase(client, first.split("/")[0], pods[first], "Running", "False")
    eventually(lambda: required.missing() == f"no pod Ready of {first}", required.missing)
    eventually(lambda: required.missing() and f"Pod Status: {first} RunningNotReady" in said, lambda: said)
    set_phase(client, first.split("/")[0], pods[first], "Running", "True")
    eventually(lambda: required.missing() is None, required.missing)
    said.clear()
    assert required.missing() is None
    assert not said


def test_pods_that_are_not_there(cluster: Cluster) -> None:
    said: list[str] = []
    assert pivot.RequiredPods(cluster, said.append).missing()
    assert "Pod Status: openshift-kube-apiserver/kube-apiserver DoesNotExist" in said


@pytest.fixture
def revisioned(client: Client) -> Iterator[None]:
    """None has a revision anywhere yet; and afterwards as it was."""
    kinds = {"kubeapiservers": "KubeAPIServer", "kubeschedulers": "KubeScheduler"}
    with contextlib.ExitStack() as stack:
        for resource in pivot.REVISIONED:
            stack.enter_context(absent(client, resource, "cluster"))
            kind = kinds.get(resource.plural, "KubeControllerManager")
            client.create(resource, named(resource.api_version, kind, "cluster", spec={"managementState": "Managed"}))
        yield


def set_revisions(client: Client, revisions: tuple[int, ...]) -> None:
    nodes = [{"nodeName": f"master-{number}", "currentRevision": value} for number, value in enumerate(revisions)]
    for resource in pivot.REVISIONED:
        client.patch(resource, "cluster", {"status": {"nodeStatuses": nodes}}, subresource="status")


@pytest.mark.usefixtures("revisioned")
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
    client.delete(EVENTS, "bootstrap-success", "kube-system")
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
    override = {"group": "", "kind": "Namespace", "name": "x", "namespace": "", "unmanaged": True}
    spec = {"clusterID": "6c08777b-262d-4a1e-bf30-58932d942266", "overrides": [override]}
    with absent(client, CLUSTER_VERSIONS, "version"):
        assert "not found" in str(pivot.overrides_kept(client, patch))
        client.create(CLUSTER_VERSIONS, named("config.openshift.io/v1", "ClusterVersion", "version", spec=spec))
        for _ in range(2):
            assert pivot.overrides_kept(client, patch) is None
        assert "overrides" not in client.get(CLUSTER_VERSIONS, "version")["spec"]


def test_etcd_must_run_in_the_cluster(client: Client) -> None:
    with absent(client, ETCDS, "cluster"):
        assert "not found" in str(pivot.etcd_missing(client))
        client.create(ETCDS, named("operator.openshift.io/v1", "Etcd", "cluster", spec={}))
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
            expected = None if status == "True" else "EtcdRunningInCluster=False: still waiting"
            assert pivot.etcd_missing(client) == expected


@pytest.mark.usefixtures("revisioned")
def test_the_end_is_reported_when_two_masters_serve(client: Client) -> None:
    said: list[str] = []
    reporting = threading.Thread(target=report, args=(client, facts(), Wait(said.append)), daemon=True)
    reporting.start()
    try:
        eventually(lambda: said)
        assert "two masters" in said[0]
        assert reporting.is_alive()
        assert not client.list(CONFIG_MAPS, "kube-system", fields="metadata.name=bootstrap").items
        set_revisions(client, (1, 1, 0))
        reporting.join(PATIENCE)
        assert client.get(CONFIG_MAPS, "bootstrap", "kube-system")["data"] == {"status": "complete"}
        report(client, facts(), Wait(said.append))
    finally:
        # Others in this cluster ask whether the bootstrap machine is done.
        client.raw("DELETE", CONFIG_MAPS.path("kube-system", "bootstrap"))


def test_an_api_that_cannot_be_asked_is_a_reason(real_api: RealApi, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    config = real_api.kubeconfig_for("admin-kubeconfig-client").read_text()
    path.write_text(config.replace(real_api.url, "https://127.0.0.1:1"))
    nobody = Client.from_kubeconfig(path)
    with contextlib.closing(Cluster(nobody)) as cluster:
        not_followed = pivot.RequiredPods(cluster, print).missing()
    for reason in (
        not_followed,
        pivot.revisions_missing(nobody),
        pivot.overrides_kept(nobody, b"{}"),
        pivot.etcd_missing(nobody),
        pivot.lease_held(nobody, "kube-scheduler", "bootstrap"),
    ):
        assert "does not answer" in str(reason)
