"""A real bootstrap machine: it becomes a control plane by itself, whatever is killed meanwhile."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.process import CommandError
from falsework.release.inventory import Release
from lab_under_test import LabUnderTest

PODS = {
    "etcd-bootstrap-member-bootstrap",
    "bootstrap-kube-apiserver-bootstrap",
    "bootstrap-kube-controller-manager-bootstrap",
    "bootstrap-kube-scheduler-bootstrap",
    "bootstrap-machine-config-operator-bootstrap",
    "bootstrap-cluster-version-operator-bootstrap",
}
MANIFESTS = {
    "bootstrap-pod.yaml",
    "etcd-member-pod.yaml",
    "kube-apiserver-pod.yaml",
    "kube-controller-manager-pod.yaml",
    "kube-scheduler-pod.yaml",
    "machineconfigoperator-bootstrap-pod.yaml",
}
PHRASES = (
    "Starting bootkube.sh...",
    "Rendering MCO manifests...",
    "Rendering CEO Manifests...",
    "Rendering etcd manifests...",
    "Rendering kube-apiserver manifests...",
    "Starting cluster-bootstrap...",
    "Waiting for API server to come up...",
    "API is up",
    "API server is up",
    "Applying cluster manifests...",
    "Waiting for bootstrap to complete...",
    "Pod Status: openshift-kube-apiserver/kube-apiserver DoesNotExist",
)
READY_PODS = "crictl pods --state ready -o json"
RECORDS = "/var/log/openshift/bootkube.json"
SERVICE_START = "service start"
KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/kubeconfigs/localhost.kubeconfig"


@pytest.fixture(scope="module")
def lab(beside_cache: Path, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabUnderTest]:
    """bootkube is killed again and again while the machine comes up for the first time."""
    lab = LabUnderTest.below(beside_cache / "bootstrap-state", tmp_path_factory.mktemp("bootstrap"))
    try:
        lab.run("up", "--until", "helper")
        lab.run("machine", "start", "bootstrap")
        chance = random.Random(6)  # noqa: S311 - any moment will do
        for _ in range(5):
            time.sleep(chance.uniform(0.1, 1.5))
            shell(lab, "systemctl kill --signal=KILL bootkube || true")
        # On a slow host all of these may have come before it was there. Once more, when it has told of its start.
        until(lab, f"cat {RECORDS}", SERVICE_START)
        shell(lab, "systemctl kill --signal=KILL bootkube || true")
        yield lab
    finally:
        lab.run("destroy", "--yes")


def shell(lab: LabUnderTest, command: str) -> str:
    return lab.inside("bootstrap", "sh", "-c", command)


def until(lab: LabUnderTest, command: str, wanted: str, patience: float = 300) -> str:
    deadline = time.monotonic() + patience
    while True:
        try:
            found = shell(lab, command)
        except CommandError as error:
            # Not the command itself, in which what is wanted may be written.
            found = f"{error.finished.output}{error.finished.complaints}"
        if wanted in found:
            return found
        assert time.monotonic() < deadline, (
            f"{command}: {found}\n{shell(lab, 'journalctl -u bootkube -o cat | tail -30')}"
        )
        time.sleep(0.2)


def until_whole(lab: LabUnderTest) -> None:
    until(lab, "curl -sk https://localhost:6443/readyz", "ok")
    until(lab, "journalctl -b -u bootkube -o cat", "Waiting for bootstrap to complete...")
    until(lab, "ls /opt/openshift", "cluster-manifests.done")


def test_it_becomes_a_control_plane(lab: LabUnderTest) -> None:
    until_whole(lab)
    assert set(shell(lab, "ls /etc/kubernetes/manifests").split()) == MANIFESTS
    for name in PODS:
        until(lab, READY_PODS, name)
    pods = json.loads(shell(lab, READY_PODS))["items"]
    assert {pod["metadata"]["name"] for pod in pods} == PODS
    until(lab, "ss -ltn", ":22623 ")
    assert ":6443 " in shell(lab, "ss -ltn")
    assert until(lab, "systemctl is-system-running || true", "running") == "running"
    assert shell(lab, "curl -sk https://localhost:6443/healthz") == "ok"


def test_the_journal_tells_it_in_both_sets_of_words(lab: LabUnderTest) -> None:
    # The last one comes a moment after it says that it waits.
    journal = until(lab, "journalctl -u bootkube -o cat", PHRASES[-1]).splitlines()
    assert [phrase for phrase in PHRASES if phrase not in journal] == []


def test_etcdctl_and_kubectl_as_the_guides_call_them(lab: LabUnderTest) -> None:
    assert "is healthy" in shell(lab, "crictl exec $(crictl ps -q --name etcd) etcdctl endpoint health --cluster 2>&1")
    assert "etcd-bootstrap" in shell(lab, "crictl exec $(crictl ps -q --name etcd) etcdctl member list")
    assert "openshift-config" in shell(lab, f"{KUBECTL} get namespaces")
    assert "version" in shell(lab, f"{KUBECTL} get clusterversion")
    assert shell(lab, f"{KUBECTL} get nodes") == ""


def test_records_tell_every_stage(lab: LabUnderTest) -> None:
    until(lab, f"test $(grep -c '{SERVICE_START}' {RECORDS}) -gt 1 && echo again", "again")
    until_whole(lab)
    records = json.loads(shell(lab, f"cat {RECORDS}"))
    done = {entry["stage"] for entry in records if entry["phase"] == "stage end" and entry["result"] == "success"}
    assert {"mco-bootstrap", "etcd-bootstrap", "kube-apiserver-bootstrap", "resolve-api-url", "wait-for-etcd"} <= done
    assert "cb-bootstrap" not in done
    release_image = json.loads(shell(lab, "cat /var/log/openshift/release-image.json"))
    assert release_image[-1] | {"timestamp": ""} == {"timestamp": "", "phase": "service end", "result": "success"}


@pytest.mark.parametrize("program", ["etcd", "kube-apiserver"])
def test_a_killed_container_comes_back(lab: LabUnderTest, program: str) -> None:
    until_whole(lab)
    before = shell(lab, f"pidof {program}")
    shell(lab, f"kill -9 {before}")
    until(lab, f'test "$(pidof {program})" != {before} && pidof {program} >/dev/null && echo anew', "anew")
    until_whole(lab)
    assert "openshift-config" in until(lab, f"{KUBECTL} get namespaces", "openshift-config")


def test_a_machine_that_lost_its_power_comes_back(lab: LabUnderTest) -> None:
    uid = shell(lab, f"{KUBECTL} get namespace kube-system -o jsonpath='{{.metadata.uid}}'")
    lab.run("machine", "kill", "bootstrap", "--force")
    lab.run("machine", "start", "bootstrap")
    until_whole(lab)
    assert until(lab, f"{KUBECTL} get namespace kube-system -o jsonpath='{{.metadata.uid}}'", uid) == uid
    until(lab, "journalctl -b -u bootkube -o cat", "Pod Status: openshift-kube-apiserver/kube-apiserver DoesNotExist")
