"""The list of masters in an operator's status, and what the operator says about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from falsework.kube.client import Object
from falsework.operators.runtime.conditions import Condition, condition

MASTERS = "node-role.kubernetes.io/master"


def of_nodes(known: Iterable[Object], nodes: Iterable[Object]) -> list[Object]:
    """One entry for each master. A node that came back under its name with another identity begins anew."""
    entries = {(entry["nodeName"], entry.get("nodeUID")): entry for entry in known}
    wanted = sorted((str(node["metadata"]["name"]), str(node["metadata"]["uid"])) for node in nodes)
    return [
        entries.get((name, uid)) or {"nodeName": name, "nodeUID": uid, "currentRevision": 0, "targetRevision": 0}
        for name, uid in wanted
    ]


def not_ready(nodes: Iterable[Object]) -> Condition:
    """NodeControllerDegraded, as OpenShift has it."""
    bad = []
    for node in nodes:
        conditions = (node.get("status") or {}).get("conditions") or ()
        ready: Object = next((entry for entry in conditions if entry["type"] == "Ready"), {})
        if ready.get("status") != "True":
            since = f" since {ready['lastTransitionTime']}" if "lastTransitionTime" in ready else ""
            why = f" because {ready['reason']} ({ready.get('message', '')})" if ready.get("reason") else ""
            bad.append(f'node "{node["metadata"]["name"]}" not ready{since}{why}')
    if bad:
        return condition(
            "NodeControllerDegraded", True, "MasterNodesReady", f"The master nodes not ready: {'; '.join(bad)}"
        )
    return condition("NodeControllerDegraded", False, "AsExpected", "All master nodes are ready")


def conditions(nodes: Iterable[Object], latest: int, waits: str = "") -> list[Condition]:
    """How far the latest revision has come."""
    nodes = list(nodes)
    counts = Counter(int(node.get("currentRevision") or 0) for node in nodes)
    active = sum(number for revision, number in counts.items() if revision)
    spread = "; ".join(f"{number} nodes are at revision {revision}" for revision, number in sorted(counts.items()))
    behind = sum(number for revision, number in counts.items() if revision != latest)
    if behind and not counts.get(latest):
        spread += f"; 0 nodes have achieved new revision {latest}"
    progress = spread + (f"; waiting: {waits}" if waits else "")
    failing = [
        node
        for node in nodes
        if node.get("lastFailedRevision") and int(node.get("currentRevision") or 0) < int(node["lastFailedRevision"])
    ]
    said = "; ".join(
        f"node {node['nodeName']} failed on revision {node['lastFailedRevision']}: "
        + ", ".join(node.get("lastFailedRevisionErrors") or ["no reason is known"])
        for node in failing
    )
    moving = bool(behind) or any(node.get("targetRevision") for node in nodes)
    return [
        condition(
            "StaticPodsAvailable",
            active > 0,
            "AsExpected" if active else "ZeroNodesActive",
            f"{active} nodes are active; {spread}" if spread else "there are no master nodes",
        ),
        condition(
            "NodeInstallerProgressing", moving, "NodeInstaller" if moving else "AllNodesAtLatestRevision", progress
        ),
        condition("NodeInstallerDegraded", bool(failing), "InstallerPodFailed" if failing else "AsExpected", said),
    ]
