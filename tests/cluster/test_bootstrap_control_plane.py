"""The bootstrap machine, alone, becomes a control plane. What guides tell people to type is typed here, as printed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventually import eventually
from falsework.machines.provider import Power
from lab_under_test import LabUnderTest, bootstrap_alone
from raised_cluster import DOMAIN

SEED = 6
STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "machine-config-operator")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabUnderTest]:
    with bootstrap_alone(tmp_path_factory.mktemp("cluster")) as lab:
        # Whatever comes after this has no machine to run on: it stays as it is.
        eventually(lambda: "are in the cluster." in bootkube_said(lab), lambda: bootkube_said(lab))
        eventually(lambda: all(name in ready_pods(lab) for name in STATIC_PODS), lambda: ready_pods(lab))
        yield lab


def bootkube_said(lab: LabUnderTest) -> str:
    return lab.typed("bootstrap", "sudo journalctl -u bootkube --no-pager")


def ready_pods(lab: LabUnderTest) -> str:
    return lab.typed("bootstrap", "sudo crictl pods --state ready")


# The API


def test_the_api_answers_through_the_load_balancer_by_its_name(lab: LabUnderTest) -> None:
    authority = lab.lab.site_folder / "tls" / "kube-apiserver-lb-signer.crt"
    assert lab.at_the_workstation(f"curl -s --cacert {authority} https://api.{DOMAIN}:6443/readyz") == "ok"


# What a guide says to look at: on the bootstrap machine


@pytest.mark.parametrize(
    "phrase",
    [
        "Starting bootkube.sh...",
        "Rendering etcd manifests...",
        "Rendering kube-apiserver manifests...",
        "Starting cluster-bootstrap...",
        "Waiting for API server to come up...",
        "API server is up",
        "Applying cluster manifests...",
    ],
)
def test_bootkube_tells_its_story(lab: LabUnderTest, phrase: str) -> None:
    assert phrase in bootkube_said(lab)
    assert phrase in lab.typed("bootstrap", "sudo journalctl -b -u bootkube.service --no-pager")


def test_progress_waits_for_the_end(lab: LabUnderTest) -> None:
    assert "Waiting for bootstrap to complete..." in lab.typed("bootstrap", "sudo journalctl -u progress --no-pager")


def test_the_unit_is_at_work(lab: LabUnderTest) -> None:
    assert "active (running)" in lab.typed("bootstrap", "systemctl status bootkube.service --no-pager")
    assert lab.typed("bootstrap", "systemctl is-system-running").strip() == "running"


def test_static_pods_run(lab: LabUnderTest) -> None:
    pods = ready_pods(lab)
    assert all(name in pods for name in STATIC_PODS), pods
    assert int(lab.typed("bootstrap", "sudo crictl ps | grep -c Running")) >= 4


def test_etcd_is_healthy(lab: LabUnderTest) -> None:
    for options in ("--cluster", ""):
        said = lab.typed(
            "bootstrap", f"sudo crictl exec -it $(sudo crictl ps -q --name etcd) etcdctl endpoint health {options}"
        )
        assert "is healthy" in said
    members = lab.typed(
        "bootstrap", "sudo crictl exec -it $(sudo crictl ps -q --name etcd) etcdctl member list -w table"
    )
    assert "etcd-bootstrap" in members
    assert "started" in members
    assert lab.typed("bootstrap", "sudo crictl logs $(sudo crictl ps -q --name etcd) 2>&1 | tail -1").strip()


def test_manifests_are_where_a_guide_looks(lab: LabUnderTest) -> None:
    assert set(lab.typed("bootstrap", "ls /etc/kubernetes/manifests").split()) == {
        "bootstrap-pod.yaml",
        "etcd-member-pod.yaml",
        "kube-apiserver-pod.yaml",
        "kube-controller-manager-pod.yaml",
        "kube-scheduler-pod.yaml",
        "machineconfigoperator-bootstrap-pod.yaml",
    }
    assert 'source="file"' in lab.typed(
        "bootstrap", "sudo journalctl -b -u kubelet.service --no-pager | grep 'SyncLoop ADD'"
    )


def test_both_ports_are_open(lab: LabUnderTest) -> None:
    listening = lab.typed("bootstrap", "sudo ss -ltnp | egrep '6443|22623'")
    assert ":6443" in listening
    assert ":22623" in listening


def test_the_api_answers_on_the_machine(lab: LabUnderTest) -> None:
    assert lab.typed("bootstrap", "curl -sk https://localhost:6443/healthz") == "ok"
    namespaces = lab.typed("bootstrap", "oc --kubeconfig=/etc/kubernetes/kubeconfigs/localhost.kubeconfig get ns")
    assert "openshift-etcd" in namespaces


def test_service_records_tell_every_stage(lab: LabUnderTest) -> None:
    records = json.loads(lab.inside("bootstrap", "cat", "/var/log/openshift/bootkube.json"))
    assert records[0]["phase"] == "service start"
    ended = [record["stage"] for record in records if record["phase"] == "stage end" and record["result"] == "success"]
    assert {"etcd-bootstrap", "kube-apiserver-bootstrap", "wait-for-etcd"} <= set(ended)


# At the workstation


def test_the_api_is_at_hand_at_the_workstation(lab: LabUnderTest) -> None:
    assert lab.at_the_workstation(f"curl -sk https://api.{DOMAIN}:6443/healthz") == "ok"
    assert lab.at_the_workstation("oc whoami") == "system:admin\n"
    assert "machine-config" in lab.at_the_workstation("oc get co")
    assert "version" in lab.at_the_workstation("oc get clusterversion")
    lab.at_the_workstation("oc get pods -A")
    kubeconfig = lab.lab.site_folder / "kubeconfigs" / "admin.kubeconfig"
    assert "kube-system" in lab.at_the_workstation(f"KUBECONFIG={kubeconfig} oc get ns")


def test_every_manifest_is_in_the_cluster(lab: LabUnderTest) -> None:
    assert "install-config" in lab.run(
        "kubectl", "get", "configmap", "-n", "kube-system", "cluster-config-v1", "-o", "yaml"
    )
    for kind in ("infrastructure", "ingress.config", "dns.config", "network.config", "scheduler.config"):
        assert "cluster" in lab.run("kubectl", "get", kind)
    assert "99-master-ssh" in lab.run("kubectl", "get", "mc")
    assert "DoesNotExist" in bootkube_said(lab)


def test_the_config_server_serves_masters_and_refuses_workers(lab: LabUnderTest) -> None:
    authority = lab.lab.site_folder / "tls" / "root-ca.crt"
    ask = f"curl -s -o /dev/null -w '%{{http_code}}' --cacert {authority} https://api-int.{DOMAIN}:22623"
    assert lab.at_the_workstation(f"{ask}/healthz") == "200"
    # The workstation is no machine of the site.
    assert lab.at_the_workstation(f"{ask}/config/master") == "403"
    assert lab.at_the_workstation(f"{ask}/config/worker") in ("403", "500")


# Kills


def test_bootkube_killed_at_any_moment_goes_on(lab: LabUnderTest) -> None:
    moments = random.Random(SEED)  # noqa: S311 - the same moments in every run
    for _ in range(3):
        lab.typed("bootstrap", "sudo systemctl kill -s KILL bootkube.service")
        time.sleep(moments.uniform(0.2, 2.0))
    is_active = "systemctl is-active bootkube.service || true"
    eventually(lambda: lab.typed("bootstrap", is_active).strip() == "active", lambda: bootkube_said(lab))
    lab.until_ready()


@pytest.mark.parametrize("container", ["etcd", "kube-apiserver"])
def test_a_killed_container_comes_back(lab: LabUnderTest, container: str) -> None:
    before = lab.typed("bootstrap", f"sudo crictl ps -q --name {container}").strip()
    init = lab.machines.init("bootstrap")
    program = "etcd" if container == "etcd" else "kube-apiserver"
    victims = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/comm")
        if _comm(path) == program and _same_network(int(path.parent.name), init)
    ]
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: lab.typed("bootstrap", f"sudo crictl ps -q --name {container}").strip() not in ("", before))
    lab.until_ready()


def _comm(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _same_network(pid: int, other: int) -> bool:
    try:
        return Path(f"/proc/{pid}/ns/net").readlink() == Path(f"/proc/{other}/ns/net").readlink()
    except OSError:
        return False


def test_a_machine_that_lost_its_power_comes_back(lab: LabUnderTest) -> None:
    lab.run("machine", "kill", "bootstrap", "--force")
    assert lab.machines.state("bootstrap").power is Power.OFF
    lab.run("machine", "start", "bootstrap")
    lab.until_ready()
    assert "kube-system" in lab.run("kubectl", "get", "ns")


# Joining. Last: from here on the cluster has a master.


def test_a_master_joins_in_two_waves_without_anybodys_help(lab: LabUnderTest) -> None:
    lab.run("machine", "start", "master-0")
    both = {"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"}

    def issued() -> set[str]:
        return {csr["spec"]["signerName"] for csr in lab.found("csr") if csr.get("status", {}).get("certificate")}

    eventually(lambda: issued() == both, lambda: lab.run("csr", "list"))
    nodes = json.loads(lab.run("kubectl", "get", "nodes", "-o", "json"))["items"]
    assert [node["metadata"]["name"] for node in nodes] == [f"master-0.{DOMAIN}"]
    listed = lab.run("csr", "list")
    assert f"master-0.{DOMAIN}" in listed
