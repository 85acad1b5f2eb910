"""From nothing to a cluster that stands on its own, with a client that polls the API all the way.

What a guide says to look at after the control plane has formed is typed here, as printed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from api_poller import Report, polling
from falsework.checks.control_plane import REQUIRED_OPERATORS
from falsework.machines.provider import Power
from falsework.stages.catalogue import STAGES
from kubectl_watch import Watched, watching
from lab_under_test import LabUnderTest, events_of, lab_up_to

DOMAIN = "lab.falsework.test"
MASTERS = ("master-0", "master-1", "master-2")
LIMIT = 600.0
AFTERWARDS = 3.0
"""Seconds the clients go on once the bootstrap is gone."""


@dataclass(frozen=True)
class Pivoted:
    lab: LabUnderTest
    polled: Report
    watched: Watched


@pytest.fixture(scope="module")
def pivoted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pivoted]:
    folder = tmp_path_factory.mktemp("pivot")
    with lab_up_to("helper", folder) as lab:
        with polling(lab, folder / "polled.json") as polled, watching(lab) as watched:
            lab.run("up", limit=LIMIT)
            time.sleep(AFTERWARDS)
        print(f"\npoller: {polled}\nkubectl get -w: {watched}")
        yield Pivoted(lab, polled, watched)


@pytest.fixture
def lab(pivoted: Pivoted) -> LabUnderTest:
    return pivoted.lab


def typed(lab: LabUnderTest, machine: str, command: str) -> str:
    """On a machine, logged in as a guide says, at a terminal: some commands insist on one."""
    quoted = command.replace("'", "'\\''")
    return lab.run("ssh", machine, "--", f"script -qec '{quoted}' /dev/null").replace("\r\n", "\n")


def at_the_workstation(lab: LabUnderTest, command: str) -> str:
    return lab.run("shell", "-c", command)


def found(lab: LabUnderTest, *words: str) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(lab.run("kubectl", "get", *words, "-o", "json"))["items"]
    return listed


# Nobody has noticed


def test_no_request_failed(pivoted: Pivoted) -> None:
    assert pivoted.polled.failures == []
    assert pivoted.polled.reads > 100
    assert pivoted.polled.writes > 100


def test_a_watch_goes_on(pivoted: Pivoted) -> None:
    """The temporary API server ends its watches when it goes, and so may each server that is replaced."""
    assert pivoted.watched.refused == []
    assert pivoted.watched.events > 100
    assert pivoted.watched.reconnects <= 5


# The end


def test_the_bootstrap_is_gone(lab: LabUnderTest) -> None:
    assert lab.machines.state("bootstrap").power is Power.ABSENT
    assert not lab.lab.netns_path("bootstrap").exists()
    assert "bootstrap" not in lab.run("balancer", "state")
    # The name server goes on answering for it until its lease has run out.
    assert "bootstrap" not in lab.inside("helper", "cat", "/etc/falsework/machines/names/site")


def test_a_second_run_finds_everything_done(lab: LabUnderTest) -> None:
    events = events_of(lab.run("up", "--json"))
    skipped = {event["stage"] for event in events if event.get("state") == "skipped"}
    assert skipped == {stage.name for stage in STAGES} - {"preflight"}
    lab.run("status")


def test_every_stage_tells_how_long_it_took(lab: LabUnderTest) -> None:
    stages = {stage["name"]: stage for stage in json.loads(lab.run("status", "--json"))["stages"]}
    for name in ("bootstrap-machine", "temporary-control-plane", "masters", "etcd", "control-plane", "pivot"):
        print(f"{name:<24} {stages[name]['seconds']:6.1f} s")


def test_waiting_for_it_ends_at_once(lab: LabUnderTest) -> None:
    lab.run("wait-for", "bootstrap-complete", limit=20)


def test_masters_are_ready(lab: LabUnderTest) -> None:
    lines = at_the_workstation(lab, "oc get nodes -l node-role.kubernetes.io/master --no-headers").splitlines()
    assert [line.split()[:2] for line in lines] == [[f"{name}.{DOMAIN}", "Ready"] for name in MASTERS]


def test_all_operators_are_available(lab: LabUnderTest) -> None:
    rows = [line.split() for line in at_the_workstation(lab, "oc get co --no-headers").splitlines()]
    states = {row[0]: row[2] for row in rows}
    assert {name: states.get(name) for name in REQUIRED_OPERATORS} == dict.fromkeys(REQUIRED_OPERATORS, "True")


@pytest.mark.parametrize("name", MASTERS)
def test_each_master_has_its_static_pods(lab: LabUnderTest, name: str) -> None:
    command = (
        f"oc get pods -A --field-selector spec.nodeName={name}.{DOMAIN} | grep -E 'etcd|apiserver|controller|scheduler'"
    )
    shown = at_the_workstation(lab, command)
    pods = typed(lab, name, "sudo crictl pods")
    for component in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert component in shown
        assert component in pods
    assert at_the_workstation(lab, f"curl -sk https://{lab.site.machine(name).address}:6443/healthz") == "ok"


def test_the_api_answers_by_its_name(lab: LabUnderTest) -> None:
    assert at_the_workstation(lab, f"curl -sk https://api.{DOMAIN}:6443/healthz") == "ok"


# etcd


def test_etcd_has_three_voters_and_no_bootstrap(lab: LabUnderTest) -> None:
    assert len(at_the_workstation(lab, "oc get pods -n openshift-etcd -l app=etcd --no-headers").splitlines()) == 3
    etcdctl = "sudo crictl exec -it $(sudo crictl ps -q --name etcd) etcdctl"
    members = typed(lab, "master-0", f"{etcdctl} member list -w table")
    assert members.count(" started ") == 3
    assert "etcd-bootstrap" not in members
    health = typed(lab, "master-0", f"{etcdctl} endpoint health --cluster")
    assert health.count("is healthy") == 3
    assert typed(lab, "master-0", "sudo crictl logs $(sudo crictl ps -q --name etcd) 2>&1 | tail -1").strip()


def test_the_etcd_operator_tells_its_story(lab: LabUnderTest) -> None:
    told = at_the_workstation(lab, "oc logs -n openshift-etcd-operator deploy/etcd-operator")
    # The operator may have moved meanwhile: then another one told the beginning.
    if len(re.findall("Adding member", told)) == len(MASTERS):
        phrases = ("Adding member", "started", "Removing bootstrap member", "Bootstrap member removed")
        places = [told.index(phrase) for phrase in phrases]
        assert places == sorted(places)


def test_etcd_says_that_it_runs_in_the_cluster(lab: LabUnderTest) -> None:
    etcd = json.loads(lab.run("kubectl", "get", "etcd", "cluster", "-o", "json"))
    states = {entry["type"]: entry["status"] for entry in etcd["status"]["conditions"]}
    for kind in ("EtcdRunningInCluster", "EtcdBootstrapMemberRemoved", "EtcdMembersAvailable"):
        assert states[kind] == "True"
    assert states.get("EtcdMembersDegraded", "False") == "False"


# Certificates: two waves for each master, nobody's by hand


def test_certificates_were_asked_for_in_two_waves(lab: LabUnderTest) -> None:
    assert "Pending" not in at_the_workstation(lab, "oc get csr --no-headers")
    assert len(found(lab, "csr")) >= 2 * len(MASTERS)


# What may not be done to it


def test_the_load_balancer_keeps_its_last_server(lab: LabUnderTest) -> None:
    for name in MASTERS[:2]:
        lab.run("balancer", "drain", name)
    try:
        assert "--force" in lab.run("balancer", "drain", MASTERS[2], code=1)
    finally:
        for name in MASTERS[:2]:
            lab.run("balancer", "ready", name)
    lab.until_ready()


def test_the_bootstrap_does_not_come_back(lab: LabUnderTest) -> None:
    lab.run("machine", "start", "bootstrap", code=2)
    lab.run("destroy", "bootstrap")


def test_the_cluster_comes_back_after_all_lost_power(lab: LabUnderTest) -> None:
    before = lab.run("kubectl", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    lab.run("machine", "kill", *MASTERS)
    lab.run("up", limit=LIMIT)
    assert lab.run("kubectl", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}") == before
    assert lab.machines.state("bootstrap").power is Power.ABSENT
