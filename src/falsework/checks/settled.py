"""Whether the cluster is finished, by its own word: operators available and at rest, the release applied."""

from __future__ import annotations

from falsework.checks.control_plane import Stand
from falsework.kube.client import Object
from falsework.kube.cluster import Cluster, condition_of, is_true, told
from falsework.kube.resources import CLUSTER_OPERATORS, CLUSTER_VERSIONS, DAEMON_SETS, NODES

_OPERATOR = {"Available": True, "Progressing": False, "Degraded": False}
_VERSION = {"Available": True, "Failing": False, "Progressing": False}
_OUR_NAMESPACES = ("openshift-", "kube-")
_OUR_TAINTS = ("node.kubernetes.io/", "node-role.kubernetes.io/")
_SAID = {
    ("Available", False): "not available",
    ("Degraded", True): "degraded",
    ("Failing", True): "failing",
    ("Progressing", True): "progressing",
}


def operator(cluster: Cluster, name: str) -> Stand:
    found = next((body for body in cluster.all(CLUSTER_OPERATORS) if body["metadata"]["name"] == name), None)
    return _stand(found, _OPERATOR)


def daemons(cluster: Cluster) -> Stand:
    """Whether the pods that belong on every node are there: an operator may not yet have heard of the newest node."""
    nodes = [node for node in cluster.all(NODES) if not _is_set_apart(node)]
    missing = []
    for body in cluster.all(DAEMON_SETS):
        if not body["metadata"]["namespace"].startswith(_OUR_NAMESPACES):
            continue
        selector = body["spec"]["template"]["spec"].get("nodeSelector") or {}
        places = sum(selector.items() <= (node["metadata"].get("labels") or {}).items() for node in nodes)
        status = body.get("status") or {}
        wanted = max(places, int(status.get("desiredNumberScheduled", 0)))
        if (available := int(status.get("numberAvailable", 0))) < wanted:
            missing.append(f"{body['metadata']['name']} {available} of {wanted}")
    return Stand(not missing, ", ".join(sorted(missing)) or "all there")


def _is_set_apart(node: Object) -> bool:
    """Whether it has a taint that somebody gave it: who tolerates that is not for us to say."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return not all(taint["key"].startswith(_OUR_TAINTS) for taint in taints)


def version(cluster: Cluster) -> Stand:
    return _stand(cluster.one(CLUSTER_VERSIONS, "version"), _VERSION)


def _stand(body: Object | None, wanted: dict[str, bool]) -> Stand:
    """In `state` the conditions that are not as wanted, with their reasons; their messages in `detail`."""
    if body is None:
        return Stand(False, "not there")
    if condition_of(body, "Available") is None:
        return Stand(False, "says nothing yet")
    wrong = [kind for kind, value in wanted.items() if is_true(body, kind) != value]
    if not wrong:
        return Stand(True, "available and at rest")
    words = [_SAID[kind, not wanted[kind]] + _reason(body, kind) for kind in wrong]
    return Stand(False, ", ".join(words), "; ".join(told(body, kind) for kind in wrong))


def _reason(body: Object, kind: str) -> str:
    reason = (condition_of(body, kind) or {}).get("reason")
    return f" ({reason})" if reason else ""
