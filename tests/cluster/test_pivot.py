"""From nothing to a cluster that stands on its own, with a client that polls the API all the way.

What a guide says to look at after the control plane has formed is typed here, as printed.
"""

from __future__ import annotations

import json
import re

import pytest

from eventually import eventually
from falsework.checks.control_plane import REQUIRED_OPERATORS
from falsework.machines.provider import Power
from falsework.stages.catalogue import STAGES
from lab_under_test import LabUnderTest, events_of
from raised_cluster import DOMAIN, MASTERS, Raised

# Nobody has noticed


def test_no_request_failed(raised: Raised) -> None:
    assert raised.polled.failures == []
    assert raised.polled.reads > 100
    assert raised.polled.writes > 100


def test_a_watch_goes_on(raised: Raised) -> None:
    """The temporary API server ends its watches when it goes, and so may each server that is replaced."""
    assert raised.watched.refused == []
    assert raised.watched.events > 100
    assert raised.watched.reconnects <= 5


# The end


def test_the_bootstrap_is_gone(lab: LabUnderTest) -> None:
    assert lab.machines.state("bootstrap").power is Power.ABSENT
    assert not lab.lab.netns_path("bootstrap").exists()
    assert "bootstrap" not in lab.run("balancer", "state")
    # The name server goes on answering for it until its lease has run out.
    assert "bootstrap" not in lab.inside("helper", "cat", "/etc/falsework/machines/names/site")


def test_a_second_run_finds_everything_done(lab: LabUnderTest) -> None:
    assert run_again(lab) <= {"preflight", "cluster-operators"}
    # An operator may have something to do at any time, and is waited for then.
    eventually(lambda: run_again(lab) == {"preflight"})
    lab.run("status")


def run_again(lab: LabUnderTest) -> set[str]:
    """The stages that were not done already; why not is printed."""
    events = events_of(lab.run("up", "--json"))
    print(*(event for event in events if event["kind"] == "condition"), sep="\n")
    return {stage.name for stage in STAGES} - {event["stage"] for event in events if event.get("state") == "skipped"}


def test_every_stage_tells_how_long_it_took(lab: LabUnderTest) -> None:
    stages = {stage["name"]: stage for stage in json.loads(lab.run("status", "--json"))["stages"]}
    for name in ("bootstrap-machine", "temporary-control-plane", "masters", "etcd", "control-plane", "pivot"):
        print(f"{name:<24} {stages[name]['seconds']:6.1f} s")


def test_waiting_for_it_ends_at_once(lab: LabUnderTest) -> None:
    lab.run("wait-for", "bootstrap-complete", limit=120)


def test_masters_are_ready(lab: LabUnderTest) -> None:
    lines = lab.at_the_workstation("oc get nodes -l node-role.kubernetes.io/master --no-headers").splitlines()
    assert [line.split()[:2] for line in lines] == [[f"{name}.{DOMAIN}", "Ready"] for name in MASTERS]


def test_all_operators_are_available(lab: LabUnderTest) -> None:
    rows = [line.split() for line in lab.at_the_workstation("oc get co --no-headers").splitlines()]
    states = {row[0]: row[2] for row in rows}
    assert {name: states.get(name) for name in REQUIRED_OPERATORS} == dict.fromkeys(REQUIRED_OPERATORS, "True")


@pytest.mark.parametrize("name", MASTERS)
def test_each_master_has_its_static_pods(lab: LabUnderTest, name: str) -> None:
    command = (
        f"oc get pods -A --field-selector spec.nodeName={name}.{DOMAIN} | grep -E 'etcd|apiserver|controller|scheduler'"
    )
    shown = lab.at_the_workstation(command)
    pods = lab.typed(name, "sudo crictl pods")
    for component in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert component in shown
        assert component in pods
    assert lab.at_the_workstation(f"curl -sk https://{lab.site.machine(name).address}:6443/healthz") == "ok"


def test_the_api_answers_by_its_name(lab: LabUnderTest) -> None:
    assert lab.at_the_workstation(f"curl -sk https://api.{DOMAIN}:6443/healthz") == "ok"


# etcd


def test_etcd_has_three_voters_and_no_bootstrap(lab: LabUnderTest) -> None:
    assert len(lab.at_the_workstation("oc get pods -n openshift-etcd -l app=etcd --no-headers").splitlines()) == 3
    etcdctl = "sudo crictl exec -it $(sudo crictl ps -q --name etcd) etcdctl"
    members = lab.typed("master-0", f"{etcdctl} member list -w table")
    assert members.count(" started ") == 3
    assert "etcd-bootstrap" not in members
    health = lab.typed("master-0", f"{etcdctl} endpoint health --cluster")
    assert health.count("is healthy") == 3
    assert lab.typed("master-0", "sudo crictl logs $(sudo crictl ps -q --name etcd) 2>&1 | tail -1").strip()


def test_the_etcd_operator_tells_its_story(lab: LabUnderTest) -> None:
    told = lab.at_the_workstation("oc logs -n openshift-etcd-operator deploy/etcd-operator")
    # The operator may have moved meanwhile: then another one told the beginning.
    if len(re.findall("Adding member", told)) == len(MASTERS):
        phrases = ("Adding member", "started", "Removing bootstrap member", "Bootstrap member removed")
        places = [told.index(phrase) for phrase in phrases]
        assert places == sorted(places)


def test_etcd_says_that_it_runs_in_the_cluster(lab: LabUnderTest) -> None:
    kinds = ("EtcdRunningInCluster", "EtcdBootstrapMemberRemoved", "EtcdMembersAvailable", "EtcdMembersDegraded")

    def states() -> list[str | None]:
        etcd = json.loads(lab.run("kubectl", "get", "etcd", "cluster", "-o", "json"))
        told = {entry["type"]: entry["status"] for entry in etcd["status"]["conditions"]}
        return [told.get(kind) for kind in kinds]

    eventually(lambda: states() == ["True", "True", "True", "False"], states)


# Certificates: two waves for each master, nobody's by hand


def test_certificates_were_asked_for_in_two_waves(lab: LabUnderTest) -> None:
    eventually(lambda: "Pending" not in lab.at_the_workstation("oc get csr --no-headers"))
    assert len(lab.found("csr")) >= 2 * len(MASTERS)


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
