"""The storage operator on a real API with exactly its rights, beside the real controllers of volumes. Scheduler and
kubelets are played by the test."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from operator_process import POD, VERSION, OperatorProcess, account_of, operator_process, until
from real_api import RealApi, free_port

from falsework.kube.client import Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    STORAGES,
)
from falsework.manifests.objects import named
from falsework.manifests.operators import storage
from falsework.operators.runtime.conditions import status_of
from falsework.operators.storage.claims import LABEL, SELECTED_NODE
from falsework.operators.storage.storage_class import storage_class

NODE = "storage-0.example"
MANIFESTS = storage.manifests(VERSION, {"falsework": "registry.example/falsework:1"})


@pytest.fixture(scope="module")
def client(cluster_api: RealApi, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = cluster_api.client()
    client.create(NODES, node(NODE))
    client.create(CLUSTER_OPERATORS, named("config.openshift.io/v1", "ClusterOperator", "storage", spec={}))
    with volume_controllers(cluster_api, programs, tmp_path_factory.mktemp("volumes") / "log"):
        yield client
    client.delete(NODES, NODE)
    client.delete(CLUSTER_OPERATORS, "storage")
    client.delete(STORAGE_CLASSES, "falsework-local")
    client.replace(STORAGES, {**client.get(STORAGES, "cluster"), "status": {}}, "status")


@contextlib.contextmanager
def volume_controllers(api: RealApi, programs: Path, log: Path) -> Iterator[None]:
    """Who binds volumes and claims, and protects both."""
    names = (
        "persistentvolume-binder-controller",
        "persistentvolumeclaim-protection-controller",
        "persistentvolume-protection-controller",
    )
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "--", str(programs / "kube-controller-manager")),
        *(f"--kubeconfig={api.kubeconfig}", f"--controllers={','.join(names)}", "--leader-elect=false"),
        *("--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--pvclaimbinder-sync-period=1s"),
    ]
    with log.open("ab") as output:
        child = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        yield
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def at_work(api: RealApi, log: Path) -> Iterator[OperatorProcess]:
    words = ["--image=falsework=registry.example/falsework:1"]
    kubeconfig = account_of(api, MANIFESTS)
    with operator_process(api, [*POD, storage.NAME], kubeconfig, log, *words) as operator:
        yield operator


def node(name: str) -> Object:
    body = named("v1", "Node", name)
    body["metadata"]["labels"] = {"kubernetes.io/hostname": name}
    return body


def claim(client: Client, name: str, on: str = NODE, **spec: object) -> str:
    """Made, and its first pod scheduled. The name of its volume."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    made = client.create(PERSISTENT_VOLUME_CLAIMS, named("v1", "PersistentVolumeClaim", name, "default", spec=wanted))
    client.patch(PERSISTENT_VOLUME_CLAIMS, name, {"metadata": {"annotations": {SELECTED_NODE: on}}}, "default")
    return f"pvc-{made['metadata']['uid']}"


def default_class(client: Client) -> str:
    """Of a claim that names none. The API hears of new classes by a watch."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = named("v1", "PersistentVolumeClaim", "only-asked", "default", spec=wanted)
    status, answer = client.raw("POST", f"{PERSISTENT_VOLUME_CLAIMS.path('default')}?dryRun=All", body)
    assert status == 201, answer
    return str(json.loads(answer)["spec"]["storageClassName"])


def ends(client: Client, pod: str, phase: str = "Succeeded", message: str = "") -> None:
    """As the kubelet says it."""
    live = client.get(PODS, pod, storage.NAMESPACE)
    ended = {"exitCode": int(phase == "Failed"), "message": message, "finishedAt": "2026-01-01T00:00:00Z"}
    status = {"phase": phase, "containerStatuses": [_container(live, ended)]}
    client.replace(PODS, {**live, "status": status}, "status")


def _container(pod: Object, ended: Object) -> Object:
    about = {"name": "folder", "image": "falsework", "imageID": "falsework", "restartCount": 0, "ready": False}
    return {**about, "state": {"terminated": ended}}


def kubelet_removes_pods(client: Client) -> None:
    """Those that have been deleted."""
    for pod in client.list(PODS, storage.NAMESPACE, labels=LABEL).items:
        if "deletionTimestamp" in pod["metadata"]:
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
            client.raw("DELETE", PODS.path(storage.NAMESPACE, pod["metadata"]["name"]), options)


def pods(client: Client) -> list[str]:
    kubelet_removes_pods(client)
    return [pod["metadata"]["name"] for pod in client.list(PODS, storage.NAMESPACE, labels=LABEL).items]


def phase(client: Client, name: str) -> str:
    return str(client.get(PERSISTENT_VOLUME_CLAIMS, name, "default")["status"]["phase"])


def volumes(client: Client) -> list[str]:
    return [one["metadata"]["name"] for one in client.list(PERSISTENT_VOLUMES, labels=LABEL).items]


def test_a_claim_binds_keeps_its_volume_and_leaves_nothing(
    client: Client, cluster_api: RealApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a pod whose container is started again: it need not wait for its own lease.
    monkeypatch.setenv("POD_NAME", "cluster-storage-operator-test")
    with at_work(cluster_api, tmp_path / "log") as operator:
        until(lambda: default_class(client) == "falsework-local", operator)
        until(
            lambda: status_of(client.get(CLUSTER_OPERATORS, "storage")["status"]["conditions"], "Available"), operator
        )
        volume = claim(client, "data")
        assert client.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")["spec"]["storageClassName"] == "falsework-local"
        until(lambda: f"make-{volume}" in pods(client), operator)
        assert client.get(PODS, f"make-{volume}", storage.NAMESPACE)["spec"]["nodeName"] == NODE
        # Killed at its work: the next one goes on.
        operator.kill()
    with at_work(cluster_api, tmp_path / "log") as operator:
        ends(client, f"make-{volume}")
        until(lambda: phase(client, "data") == "Bound", operator)
        until(lambda: pods(client) == [], operator)
        made = client.get(PERSISTENT_VOLUMES, volume)
        assert made["spec"]["local"]["path"] == f"/var/lib/falsework/volumes/{volume}"
        # Somebody deletes the volume under a claim: it stays as long as that.
        client.delete(PERSISTENT_VOLUMES, volume)
        assert phase(client, "data") == "Bound"
        client.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
        until(lambda: f"remove-{volume}" in pods(client), operator)
        ends(client, f"remove-{volume}", "Failed", "the disk is on fire")
        until(lambda: operator.said("the disk is on fire"), operator)
        assert volumes(client) == [volume]
        until(lambda: _is_new(client, f"remove-{volume}"), operator)
        ends(client, f"remove-{volume}")
        until(lambda: volumes(client) == pods(client) == [], operator)
    assert "forbidden" not in (tmp_path / "log").read_text().lower()


def _is_new(client: Client, pod: str) -> bool:
    kubelet_removes_pods(client)
    return bool(client.get(PODS, pod, storage.NAMESPACE)["status"]["phase"] == "Pending")


def test_nodes_that_go_and_claims_that_cannot_be(client: Client, cluster_api: RealApi, tmp_path: Path) -> None:
    with at_work(cluster_api, tmp_path / "log") as operator:
        until(lambda: default_class(client) == "falsework-local", operator)
        # The scheduler's choice is gone: it is to choose again.
        client.create(NODES, node("storage-1.example"))
        volume = claim(client, "late", on="storage-9.example")
        until(lambda: SELECTED_NODE not in _annotations(client, "late"), operator)
        choice = {"metadata": {"annotations": {SELECTED_NODE: "storage-1.example"}}}
        client.patch(PERSISTENT_VOLUME_CLAIMS, "late", choice, "default")
        until(lambda: f"make-{volume}" in pods(client), operator)
        ends(client, f"make-{volume}")
        until(lambda: phase(client, "late") == "Bound", operator)
        # With the node goes the folder: nothing is left to remove.
        client.delete(NODES, "storage-1.example")
        client.delete(PERSISTENT_VOLUME_CLAIMS, "late", "default")
        until(lambda: volumes(client) == pods(client) == [], operator)

        claim(client, "shared", accessModes=["ReadWriteMany"])
        until(lambda: "ReadWriteOnce" in _told(client, "shared"), operator)
        # A claim that goes before it has a volume leaves no folder.
        volume = claim(client, "brief")
        until(lambda: f"make-{volume}" in pods(client), operator)
        client.delete(PERSISTENT_VOLUME_CLAIMS, "brief", "default")
        until(lambda: pods(client) == [f"remove-{volume}"], operator)
        ends(client, f"remove-{volume}")
        until(lambda: pods(client) == [], operator)
        client.delete(PERSISTENT_VOLUME_CLAIMS, "shared", "default")
        assert volumes(client) == []
    assert "forbidden" not in (tmp_path / "log").read_text().lower()


def test_whether_data_is_kept_is_what_the_class_says(client: Client, cluster_api: RealApi, tmp_path: Path) -> None:
    kept = {**storage_class(is_default=False), "reclaimPolicy": "Retain"}
    kept["metadata"] = {"name": "kept"}
    client.create(STORAGE_CLASSES, kept)
    with at_work(cluster_api, tmp_path / "log") as operator:
        # As long as a name can be: what is said of it has one that is made of it.
        name = "-".join(["k" * 50] * 4) + "-" + "k" * 40
        volume = claim(client, name, storageClassName="kept")
        until(lambda: f"make-{volume}" in pods(client), operator)
        client.delete(STORAGE_CLASSES, "kept")
        ends(client, f"make-{volume}")
        until(lambda: "there is no StorageClass 'kept'" in _told(client, name), operator)
        assert volumes(client) == []
        client.create(STORAGE_CLASSES, kept)
        until(lambda: phase(client, name) == "Bound", operator)
        assert client.get(PERSISTENT_VOLUMES, volume)["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        client.delete(PERSISTENT_VOLUME_CLAIMS, name, "default")
        until(lambda: client.get(PERSISTENT_VOLUMES, volume)["status"]["phase"] == "Released", operator)
        client.delete(PERSISTENT_VOLUMES, volume)
        until(lambda: volumes(client) == pods(client) == [], operator)
    client.delete(STORAGE_CLASSES, "kept")


def test_a_volume_made_for_one_claim_binds_although_there_is_a_default_class(
    client: Client, cluster_api: RealApi, tmp_path: Path
) -> None:
    """As in the guides: the volume names its claim, and neither of them a class."""
    spec = {
        "capacity": {"storage": "100Gi"},
        "accessModes": ["ReadWriteMany"],
        "nfs": {"path": "/exports/registry", "server": "192.0.2.10"},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "guide", "namespace": "default"},
    }
    wanted = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "100Gi"}}}
    with at_work(cluster_api, tmp_path / "log") as operator:
        until(lambda: default_class(client) == "falsework-local", operator)
        client.create(PERSISTENT_VOLUMES, named("v1", "PersistentVolume", "guide-pv", spec=spec))
        client.create(PERSISTENT_VOLUME_CLAIMS, named("v1", "PersistentVolumeClaim", "guide", "default", spec=wanted))
        try:
            until(lambda: phase(client, "guide") == "Bound", operator)
        finally:
            client.delete(PERSISTENT_VOLUME_CLAIMS, "guide", "default")
            client.delete(PERSISTENT_VOLUMES, "guide-pv")


def _annotations(client: Client, name: str) -> Object:
    found: Object = client.get(PERSISTENT_VOLUME_CLAIMS, name, "default")["metadata"].get("annotations") or {}
    return found


def _told(client: Client, name: str) -> str:
    events = client.list(EVENTS, "default", fields=f"involvedObject.name={name}").items
    return "\n".join(event["message"] for event in events)
