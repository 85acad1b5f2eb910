"""How far the controllers of Kubernetes are with what an operator has asked them to run."""

from __future__ import annotations

from falsework.kube.client import Object


def is_everywhere(daemon_set: Object | None) -> bool:
    """Whether every node has it as it is to be, and ready."""
    if daemon_set is None:
        return False
    status = daemon_set.get("status") or {}
    wanted = int(status.get("desiredNumberScheduled", 0))
    have = min(int(status.get("numberAvailable", 0)), int(status.get("updatedNumberScheduled", 0)))
    return _is_seen(daemon_set) and wanted > 0 and have >= wanted


def is_complete(deployment: Object | None) -> bool:
    """Whether all its pods are as they are to be, and ready, and none is left of others."""
    if deployment is None:
        return False
    status, wanted = deployment.get("status") or {}, int(deployment["spec"].get("replicas", 1))
    counts = (int(status.get(key, 0)) for key in ("updatedReplicas", "replicas", "availableReplicas"))
    return _is_seen(deployment) and all(count == wanted for count in counts)


def _is_seen(live: Object) -> bool:
    """Whether what the status says is said of the object as it is now."""
    return int((live.get("status") or {}).get("observedGeneration", 0)) >= int(live["metadata"]["generation"])
