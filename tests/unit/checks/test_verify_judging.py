"""What is made of what programs say."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from verify_facts import ToldClient, ToldCommands, facts_of

from falsework.assets.pki import Subject, Use, Validity, certificate_pem, issue, utc_now
from falsework.checks.verify import certificates, cluster, etcd, network, said
from falsework.checks.verify.catalogue import all_checks
from falsework.checks.verify.model import Outcome
from falsework.checks.verify.said import Judge, Said
from falsework.helper.balancer import Server, Status
from falsework.site.load import default_site

SITE = default_site()
NODES = "master-0   Ready   control-plane,master   5m   v1.34\nmaster-1   NotReady   master   5m   v1.34\n"


@pytest.mark.parametrize(
    ("judge", "output", "outcome", "evidence"),
    [
        (said.is_exactly("ok"), "ok\n", "pass", "ok"),
        (said.is_exactly("ok"), "no", "fail", "no, not ok"),
        (said.is_exactly("ok"), "", "fail", "nothing, not ok"),
        (said.has("a", "b"), "xa\nyb\nz", "pass", "xa; yb"),
        (said.has("a", "b", "c"), "xa", "fail", "not there: b, c"),
        (said.has_at_least(2, "^x"), "x1\nx2", "pass", "2 of 2: x1; x2"),
        (said.has_at_least(2, "^x"), "x1\ny", "fail", "1 of 2: x1"),
        (said.counts_at_least(4), "5\n", "pass", "5"),
        (said.counts_at_least(4), "3\n", "fail", "3, not 4 or more"),
        (said.counts_at_least(4), "many\n", "fail", "many, not 4 or more"),
        (said.every_row("Ready", lambda row: row[1] == "Ready"), NODES.splitlines()[0], "pass", "1 Ready: master-0"),
        (said.every_row("Ready", lambda row: row[1] == "Ready"), "", "fail", "0 rows, not 1 or more"),
        (said.nothing("none left"), "\n", "pass", "none left"),
        (said.nothing("none left"), "csr-1\n", "fail", "csr-1"),
        (said.ends_well(), "last\n", "pass", "last"),
    ],
)
def test_judging(judge: Judge, output: str, outcome: str, evidence: str) -> None:
    verdict = judge(Said(0, output))
    assert (verdict.outcome, verdict.evidence) == (outcome, evidence)


def test_a_bad_row_is_named() -> None:
    verdict = said.every_row("Ready", lambda row: row[1] == "Ready")(Said(0, NODES))
    assert verdict.outcome is Outcome.FAIL
    assert "master-1 NotReady" in verdict.evidence


@pytest.mark.parametrize(
    "judge", [said.ends_well(), said.has("x"), said.nothing("x"), said.is_exactly("x"), said.counts_at_least(0)]
)
def test_a_command_that_fails_is_a_failure_whatever_it_says(judge: Judge) -> None:
    verdict = judge(Said(1, "", "error: the server doesn't have a resource type\n"))
    assert verdict.outcome is Outcome.FAIL
    assert verdict.evidence == "exit code 1: error: the server doesn't have a resource type"


def test_evidence_fits_on_a_line() -> None:
    assert "\n" not in said.short("a\nb")
    assert len(said.short("word " * 1000)) <= 240


# Objects


def body(name: str, conditions: dict[str, str], **more: Any) -> dict[str, Any]:
    told = [{"type": kind, "status": status, "message": f"{kind} of {name}"} for kind, status in conditions.items()]
    return {"metadata": {"name": name, **more.pop("metadata", {})}, "status": {"conditions": told}, **more}


def look(folder: Path, check: str, client: ToldClient) -> tuple[Outcome, str]:
    found = next(one for one in all_checks(facts_of(folder, client=client)) if one.id == check)
    verdict = found.look()
    return verdict.outcome, verdict.evidence


def test_nodes(tmp_path: Path) -> None:
    names = [SITE.fqdn(machine) for machine in (*SITE.masters, *SITE.workers)]
    ready = [body(name, {"Ready": "True"}) for name in names]
    assert look(tmp_path, "cluster/nodes", ToldClient({"nodes": ready}))[0] is Outcome.PASS
    outcome, evidence = look(tmp_path, "cluster/nodes", ToldClient({"nodes": ready[1:]}))
    assert (outcome, evidence) == (Outcome.FAIL, f"{names[0]} is not a node")
    ready[1] = body(names[1], {"Ready": "False"})
    ready[2] = body(names[2], {"Ready": "True"}, spec={"unschedulable": True})
    outcome, evidence = look(tmp_path, "cluster/nodes", ToldClient({"nodes": ready}))
    assert outcome is Outcome.FAIL
    assert "Ready of" in evidence
    assert f"{names[2]} is cordoned" in evidence


def test_operators(tmp_path: Path) -> None:
    good = {"Available": "True", "Progressing": "False", "Degraded": "False"}
    for conditions, outcome in (
        (good, Outcome.PASS),
        ({**good, "Available": "False"}, Outcome.FAIL),
        ({**good, "Degraded": "True"}, Outcome.FAIL),
        ({**good, "Progressing": "True"}, Outcome.FAIL),
        ({}, Outcome.FAIL),
    ):
        client = ToldClient({"clusteroperators": [body("etcd", good), body("network", conditions)]})
        assert look(tmp_path, "cluster/operators", client)[0] is outcome
    assert look(tmp_path, "cluster/operators", ToldClient())[0] is Outcome.FAIL


def test_requests(tmp_path: Path) -> None:
    client = ToldClient({"certificatesigningrequests": [body("csr-a", {"Approved": "True"})]})
    assert look(tmp_path, "cluster/requests", client)[0] is Outcome.PASS
    client = ToldClient({"certificatesigningrequests": [body("csr-b", {}, spec={"username": "system:node:x"})]})
    assert look(tmp_path, "cluster/requests", client) == (Outcome.FAIL, "1 wait: csr-b of system:node:x")


def test_stuck_pods(tmp_path: Path) -> None:
    def pod(reason: str) -> dict[str, Any]:
        waiting = {"name": "router", "state": {"waiting": {"reason": reason}}}
        return {"metadata": {"name": "p", "namespace": "n"}, "status": {"containerStatuses": [waiting]}}

    assert look(tmp_path, "cluster/pods", ToldClient({"pods": [pod("ContainerCreating")]}))[0] is Outcome.PASS
    outcome, evidence = look(tmp_path, "cluster/pods", ToldClient({"pods": [pod("CrashLoopBackOff")]}))
    assert (outcome, evidence) == (Outcome.FAIL, "n/p: router is in CrashLoopBackOff")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ({"conditions": [{"type": "Available", "status": "True"}], "history": [{"state": "Completed"}]}, "pass"),
        ({"conditions": [{"type": "Available", "status": "True"}], "history": [{"state": "Partial"}]}, "fail"),
        ({"conditions": [{"type": "Available", "status": "False"}], "history": [{"state": "Completed"}]}, "fail"),
        ({}, "fail"),
    ],
)
def test_version(status: dict[str, Any], outcome: str) -> None:
    assert cluster._version({"metadata": {"name": "version"}, "status": status}).outcome == outcome


def test_a_part_the_cluster_does_not_have_is_skipped_with_the_reason(tmp_path: Path) -> None:
    for check in ("network/ingress", "network/cluster-dns/master-0", "storage/registry", "000/registry/config"):
        outcome, reason = look(tmp_path, check, ToldClient())
        assert outcome is Outcome.SKIP
        assert reason.startswith("the cluster has no operator")
    assert look(tmp_path, "000/console/pods", ToldClient()) == (Outcome.SKIP, "the cluster has no web console")


# The scheduler's config


@pytest.mark.parametrize(
    ("schedulable", "is_worker", "is_tainted", "outcome"),
    [
        (True, True, False, "pass"),
        (False, False, True, "pass"),
        (True, False, True, "fail"),
        (False, True, True, "fail"),
    ],
)
def test_masters_follow_the_scheduler(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    schedulable: bool,
    is_worker: bool,
    is_tainted: bool,
    outcome: str,
) -> None:
    labels = {"node-role.kubernetes.io/master": ""} | ({"node-role.kubernetes.io/worker": ""} if is_worker else {})
    taints = [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}] if is_tainted else []
    node = body("master-0", {"Ready": "True"}, metadata={"labels": labels}, spec={"taints": taints})
    facts = facts_of(tmp_path, client=ToldClient({"nodes": [node]}))
    monkeypatch.setattr(facts.cluster, "scheduler", lambda: {"spec": {"mastersSchedulable": schedulable}})
    assert cluster.masters_match_scheduler(facts).outcome == outcome


# etcd


def status(leader: int, *, learner: bool = False, errors: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"Status": {"leader": leader, "raftTerm": 4, "isLearner": learner, "errors": list(errors)}}


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ([status(1)] * 3, "pass"),
        ([status(1)] * 2, "fail"),
        ([status(1), status(1), status(2)], "fail"),
        ([status(1), status(1), status(1, learner=True)], "fail"),
        ([status(1), status(1), status(1, errors=("NOSPACE",))], "fail"),
    ],
)
def test_voters(members: list[dict[str, Any]], outcome: str) -> None:
    assert etcd.voters(Said(0, json.dumps(members)), 3).outcome == outcome


def test_etcd_that_does_not_answer_as_etcd() -> None:
    assert etcd.voters(Said(0, "Error: context deadline exceeded"), 3).outcome is Outcome.FAIL


# Certificates


def secret(name: str, age: timedelta) -> dict[str, Any]:
    pair = issue(Subject(name), Validity.DAY, utc_now() - age, uses=frozenset((Use.SERVER,)), dns=(name,))
    content = base64.b64encode(certificate_pem(pair.certificate)).decode()
    return {"metadata": {"namespace": "openshift-etcd", "name": name}, "data": {"tls.crt": content}}


def test_kept_certificates() -> None:
    fresh, old, over = (secret(name, age) for name, age in _AGES.items())
    verdict = certificates.kept([fresh], utc_now())
    assert verdict.outcome is Outcome.PASS
    assert "openshift-etcd/fresh" in verdict.evidence
    for bad in (old, over):
        verdict = certificates.kept([fresh, bad], utc_now())
        assert verdict.outcome is Outcome.FAIL
        assert bad["metadata"]["name"] in verdict.evidence
    assert certificates.kept([], utc_now()).outcome is Outcome.PASS
    broken = {"metadata": {"namespace": "n", "name": "b"}, "data": {"tls.crt": base64.b64encode(b"no").decode()}}
    assert certificates.kept([broken], utc_now()).evidence == "n/b: not a certificate"


_AGES = {"fresh": timedelta(hours=1), "old": timedelta(hours=23, minutes=30), "over": timedelta(hours=30)}


# The load balancer


def server(backend: str, name: str, status: Status = Status.UP, *, backup: bool = False) -> Server:
    return Server(backend, name, "10.0.0.1:1", status, backup, "", 0)


def test_backends() -> None:
    api = [server("api", machine.name) for machine in SITE.masters]
    routers = [server("ingress-https", "worker-0"), server("ingress-https", "worker-1", Status.DOWN)]
    backup = server("api", "bootstrap", Status.DOWN, backup=True)
    assert network.balanced([*api, backup, *routers], SITE, has_routers=True).outcome is Outcome.PASS
    verdict = network.balanced([*api[1:], server("api", "master-0", Status.DOWN)], SITE, has_routers=False)
    assert (verdict.outcome, verdict.evidence) == (Outcome.FAIL, "api: master-0 is not up")
    without = [server("ingress-https", "worker-0", Status.DOWN)]
    assert network.balanced([*api, *without], SITE, has_routers=True).outcome is Outcome.FAIL
    assert network.balanced([*api, *without], SITE, has_routers=False).outcome is Outcome.PASS


# The password


def test_the_password_is_never_shown(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    path = facts.lab.site_folder / "auth" / "kubeadmin-password"
    path.parent.mkdir(parents=True)
    path.write_text("abcde-fghij-kmnop-qrstu")
    path.chmod(0o600)
    check = next(one for one in all_checks(facts) if one.id == "000/assets/password")
    assert check.look().outcome is Outcome.PASS
    assert "abcde" not in check.look().evidence
    path.chmod(0o644)
    assert check.look().outcome is Outcome.FAIL


def test_members_of_a_table(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    assert isinstance(facts.commands, ToldCommands)
    check = next(one for one in all_checks(facts) if one.id == "003/etcd/members")
    row = "| 8e9e | started | {} | https://10.0.0.1:2380 | https://10.0.0.1:2379 | false |"
    for names, outcome in (
        (("master-0", "master-1", "master-2"), Outcome.PASS),
        (("master-0", "master-1"), Outcome.FAIL),
        (("master-0", "master-1", "master-2", "etcd-bootstrap"), Outcome.FAIL),
    ):
        facts.commands.answers[check.command] = Said(0, "\n".join(row.format(name) for name in names))
        assert check.look().outcome is outcome
