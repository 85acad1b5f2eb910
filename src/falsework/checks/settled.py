"""Whether the cluster is finished, by its own word: operators available and at rest, the release applied."""

from __future__ import annotations

from falsework.checks.control_plane import Stand
from falsework.kube.client import Object
from falsework.kube.cluster import Cluster, condition_of, is_true, told
from falsework.kube.resources import CLUSTER_OPERATORS, CLUSTER_VERSIONS, DAEMON_SETS, NODES
from falsework.operators.runtime.rollouts import roll_out_of

_OPERATOR = {"Available": True, "Progressing": False, "Degraded": False}
_VERSION = {"Available": True, "Failing": False, "Progressing": False}
_OUR_NAMESPACES = ("openshift-", "kube-")
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
    nodes = cluster.all(NODES)
    missing = []
    for body in cluster.all(DAEMON_SETS):
        if not body["metadata"]["namespace"].startswith(_OUR_NAMESPACES):
            continue
        places = sum(_belongs(body["spec"]["template"]["spec"], node) for node in nodes)
        rolled = roll_out_of(body)
        if rolled.available < (wanted := max(places, rolled.wanted)):
            missing.append(f"{body['metadata']['name']} {rolled.available} of {wanted}")
    return Stand(not missing, ", ".join(sorted(missing)) or "all there")


def _belongs(pod: Object, node: Object) -> bool:
    """Whether a DaemonSet's pod is to be on the node, by its selector and its tolerations."""
    selector = pod.get("nodeSelector") or {}
    tolerations = pod.get("tolerations") or ()
    return selector.items() <= (node["metadata"].get("labels") or {}).items() and all(
        # What Kubernetes says of a node itself, every DaemonSet tolerates.
        taint["key"].startswith("node.kubernetes.io/") or any(_tolerates(each, taint) for each in tolerations)
        for taint in (node.get("spec") or {}).get("taints") or ()
    )


def _tolerates(toleration: Object, taint: Object) -> bool:
    return (
        toleration.get("key") in (None, "", taint["key"])
        and toleration.get("effect") in (None, "", taint["effect"])
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
    )


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
