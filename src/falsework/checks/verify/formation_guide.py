"""Guide 003: the control plane forms on the masters."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.guide import Command, Guide
from falsework.checks.verify.model import Check, Verdict, failed, passed
from falsework.checks.verify.said import (
    Judge,
    Said,
    every_row,
    fine,
    has,
    has_at_least,
    is_exactly,
    passed_with_lines,
    short,
)
from falsework.checks.verify.typed import STATIC_PODS, of_etcd

FILE = "003_06c6c716e2b81fff.txt"
_APPROVE = "Step 3: Approve CSRs and verify nodes"
_SCALING = "Step 4: Watch etcd Scaling"
_OPERATOR = "Step 5: Monitor etcd-operator"
_PODS = "Step 6: Watch Static Pods on Masters"
_API = "Step 7: Verify API Servers"
_CHECKLIST = "Verification Checklist"
_TABLE = "without the table's head"


def checks(facts: Facts) -> Iterator[Check]:
    guide = Guide(facts, FILE)
    yield from _joined(guide)
    yield from _etcd(guide)
    yield from _masters(guide)
    yield from _checklist(guide)


def _joined(guide: Guide) -> Iterator[Check]:
    yield guide.in_shell(
        Command(
            "join/requests", _APPROVE, "oc get csr", "none is pending", as_run="oc get csr --no-headers", because=_TABLE
        ),
        every_row("decided", lambda row: "Pending" not in row[-1], 0),
    )
    yield guide.in_shell(
        Command("join/nodes", _APPROVE, "oc get nodes", "nodes are registered"), fine(passed_with_lines)
    )


def _etcd(guide: Guide) -> Iterator[Check]:
    masters, is_gone = guide.facts.site.masters, guide.facts.bootstrap is None
    expected = f"{len(masters)} masters, all started" + (", no etcd-bootstrap" if is_gone else "")
    yield of_etcd(
        guide, "etcd/members", _SCALING, "member list -w table", expected, _members(len(masters), is_gone=is_gone)
    )
    yield of_etcd(
        guide,
        "etcd/health",
        _SCALING,
        "endpoint health --cluster",
        "all endpoints are healthy",
        has_at_least(len(masters) if is_gone else 1, "is healthy"),
    )
    yield guide.in_shell(
        Command(
            "etcd/operator",
            _OPERATOR,
            "oc logs -n openshift-etcd-operator deploy/etcd-operator -f",
            "its log comes through the API and the node's kubelet",
            as_run="oc logs -n openshift-etcd-operator deploy/etcd-operator --tail=20",
            because="its last lines, without following",
        ),
        fine(passed_with_lines),
    )


def _members(count: int, *, is_gone: bool) -> Judge:
    def judged(said: Said) -> Verdict:
        rows = [line for line in said.lines if " started " in line]
        names = ", ".join(line.split("|")[3].strip() for line in rows)
        bootstrap_is_there = any("etcd-bootstrap" in line for line in rows)
        if len(rows) < count or (is_gone and bootstrap_is_there):
            return failed(short(f"{len(rows)} members: {names}"))
        return passed(short(f"{len(rows)} members: {names}"))

    return fine(judged)


def _masters(guide: Guide) -> Iterator[Check]:
    site = guide.facts.site
    yield guide.in_shell(
        Command(
            "api/balanced",
            _API,
            "curl -k https://api.${CLUSTER_DOMAIN}:6443/healthz",
            "ok",
            as_run=f"curl -sSk https://{site.api_host}:6443/healthz",
            because="this cluster's domain",
        ),
        is_exactly("ok"),
    )
    for index, machine in enumerate(site.masters):
        yield guide.on_master(
            Command(
                f"pods/{machine.name}",
                _PODS,
                "sudo crictl pods",
                ", ".join(STATIC_PODS),
                as_run="sudo crictl pods --state ready",
                because="pods of earlier revisions stay in the list for a while",
            ),
            has(*STATIC_PODS),
            machine=machine,
        )
        yield guide.in_shell(
            Command(
                f"api/{machine.name}",
                _API,
                f"curl -k https://${{MASTER{index}_IP}}:6443/healthz",
                "ok",
                as_run=f"curl -sSk https://{machine.address}:6443/healthz",
                because="this master's address",
            ),
            is_exactly("ok"),
        )


def _checklist(guide: Guide) -> Iterator[Check]:
    site = guide.facts.site
    yield guide.in_shell(
        Command(
            "checklist/masters", _CHECKLIST, "oc get nodes -l node-role.kubernetes.io/master", "all masters are nodes"
        ),
        has(*(site.fqdn(machine) for machine in site.masters)),
    )
    for machine in site.masters:
        pods = "| grep -E 'etcd|apiserver|controller|scheduler'"
        yield guide.in_shell(
            Command(
                f"checklist/pods/{machine.name}",
                _CHECKLIST,
                f"oc get pods -A --field-selector spec.nodeName=${{node}}.${{CLUSTER_DOMAIN}} {pods}",
                "all masters have static pods",
                as_run=f"oc get pods -A --field-selector spec.nodeName={site.fqdn(machine)} {pods}",
                because="this master's name",
            ),
            has(*(f"{pod}-{site.fqdn(machine)}" for pod in STATIC_PODS)),
        )
    yield guide.in_shell(
        Command(
            "checklist/etcd", _CHECKLIST, "oc get pods -n openshift-etcd -l app=etcd", "a pod on each master, running"
        ),
        has_at_least(len(site.masters), r"\sRunning\s"),
    )
