"""The cluster by its own word: nodes, operators, version, certificate requests, pods."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Check, Verdict, failed, passed
from falsework.checks.verify.own import own
from falsework.checks.verify.said import short
from falsework.kube.client import Object
from falsework.kube.cluster import condition_of, is_true, told
from falsework.kube.resources import MACHINE_CONFIG_POOLS

_STUCK = frozenset(
    (
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    )
)
_MASTER = "node-role.kubernetes.io/master"
_WORKER = "node-role.kubernetes.io/worker"


def checks(facts: Facts) -> Iterator[Check]:
    yield own("cluster/nodes", "oc get nodes", "every machine of the site is a Ready node", lambda: _nodes(facts))
    yield own(
        "cluster/operators",
        "oc get co",
        "every operator is Available, none Progressing or Degraded",
        lambda: _operators(facts.cluster.operators),
    )
    yield own(
        "cluster/version",
        "oc get clusterversion",
        "Available, the release completely applied",
        lambda: _version(facts.cluster.version()),
    )
    yield own("cluster/requests", "oc get csr", "no request waits for approval", lambda: _requests(facts))
    yield own("cluster/pods", "oc get pods -A", "no container is stuck", lambda: _pods(facts.cluster.pods))
    yield own("cluster/pools", "oc get mcp", "every pool has all its machines updated", lambda: _pools(facts))
    yield own("cluster/api", "oc get --raw /readyz", "ok", lambda: _ready(facts))


def _nodes(facts: Facts) -> Verdict:
    known = {node["metadata"]["name"]: node for node in facts.cluster.nodes}
    wanted = [facts.site.fqdn(machine) for machine in (*facts.site.masters, *facts.site.workers)]
    wrong = [f"{name} is not a node" for name in wanted if name not in known]
    wrong += [f"{name}: {told(node, 'Ready')}" for name, node in known.items() if not is_true(node, "Ready")]
    wrong += [f"{name} is cordoned" for name, node in known.items() if (node.get("spec") or {}).get("unschedulable")]
    return failed(short("; ".join(wrong))) if wrong else passed(f"{len(known)} nodes are Ready")


def _operators(operators: list[Object]) -> Verdict:
    wrong = []
    for operator in operators:
        name = operator["metadata"]["name"]
        if not is_true(operator, "Available"):
            wrong.append(f"{name}: {told(operator, 'Available')}")
        wrong += [f"{name}: {told(operator, kind)}" for kind in ("Degraded", "Progressing") if is_true(operator, kind)]
    if wrong or not operators:
        return failed(short("; ".join(wrong) or "there are no operators"))
    return passed(f"{len(operators)} operators are Available")


def _version(version: Object | None) -> Verdict:
    history = ((version or {}).get("status") or {}).get("history") or [{}]
    if not is_true(version, "Available"):
        return failed(short(told(version, "Available")))
    wrong = [told(version, kind) for kind in ("Failing", "Progressing") if is_true(version, kind)]
    if wrong or history[0].get("state") != "Completed":
        return failed(short("; ".join(wrong) or f"the last update is {history[0].get('state', 'not told of')}"))
    return passed(f"{history[0].get('version')} is completely applied")


def _requests(facts: Facts) -> Verdict:
    waiting = [
        f"{request['metadata']['name']} of {(request.get('spec') or {}).get('username')}"
        for request in facts.cluster.requests
        if not condition_of(request, "Approved") and not condition_of(request, "Denied")
    ]
    if waiting:
        return failed(short(f"{len(waiting)} wait: {', '.join(waiting)}"))
    return passed(f"{len(facts.cluster.requests)} requests, all decided")


def _pods(pods: list[Object]) -> Verdict:
    wrong = []
    for pod in pods:
        status = pod.get("status") or {}
        for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            reason = ((container.get("state") or {}).get("waiting") or {}).get("reason")
            if reason in _STUCK:
                place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                wrong.append(f"{place}: {container['name']} is in {reason}")
    return failed(short("; ".join(wrong))) if wrong else passed(f"{len(pods)} pods, none stuck")


def _pools(facts: Facts) -> Verdict:
    wrong, right = [], []
    for name in ("master", "worker"):
        pool = facts.cluster.one(MACHINE_CONFIG_POOLS, name)
        status = (pool or {}).get("status") or {}
        count = f"{name} {status.get('updatedMachineCount', 0)}/{status.get('machineCount', 0)}"
        behind = status.get("updatedMachineCount") != status.get("machineCount")
        if pool is None or behind or is_true(pool, "Degraded"):
            wrong.append(f"{count}: {told(pool, 'Updated')}")
        right.append(count)
    return failed(short("; ".join(wrong))) if wrong else passed(f"updated: {', '.join(right)}")


def _ready(facts: Facts) -> Verdict:
    status, content = facts.cluster.raw("/readyz")
    answer = short(content.decode(errors="replace"))
    return passed(answer) if status == 200 else failed(f"HTTP status {status}: {answer}")


def masters_match_scheduler(facts: Facts) -> Verdict:
    """Whether the masters' roles and taints are what the scheduler's config asks for."""
    scheduler = facts.cluster.scheduler()
    if scheduler is None:
        return failed("there is no schedulers.config.openshift.io cluster")
    wanted = bool((scheduler.get("spec") or {}).get("mastersSchedulable"))
    wrong, masters = [], 0
    for node in facts.cluster.nodes:
        labels = node["metadata"].get("labels") or {}
        if _MASTER not in labels:
            continue
        masters += 1
        taints = (node.get("spec") or {}).get("taints") or ()
        is_tainted = any(taint["key"] == _MASTER and taint["effect"] == "NoSchedule" for taint in taints)
        if (_WORKER in labels) != wanted or is_tainted == wanted:
            wrong.append(f"{node['metadata']['name']}: worker {_WORKER in labels}, tainted {is_tainted}")
    state = f"mastersSchedulable: {str(wanted).lower()}"
    return failed(short(f"{state}; {'; '.join(wrong)}")) if wrong else passed(f"{state}; {masters} masters agree")
