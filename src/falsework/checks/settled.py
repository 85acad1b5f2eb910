"""Whether the cluster is finished, by its own word: operators available and at rest, the release applied."""

from __future__ import annotations

from falsework.checks.cluster import Cluster, condition_of, is_true, told
from falsework.checks.control_plane import Stand
from falsework.kube.client import Object
from falsework.kube.resources import CLUSTER_OPERATORS, CLUSTER_VERSIONS

_OPERATOR = {"Available": True, "Progressing": False, "Degraded": False}
_VERSION = {"Available": True, "Failing": False, "Progressing": False}
_SAID = {
    ("Available", False): "not available",
    ("Degraded", True): "degraded",
    ("Failing", True): "failing",
    ("Progressing", True): "progressing",
}


def operator(cluster: Cluster, name: str) -> Stand:
    found = next((body for body in cluster.all(CLUSTER_OPERATORS) if body["metadata"]["name"] == name), None)
    return _stand(found, _OPERATOR)


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
