"""How far the controllers of Kubernetes are with what an operator has asked them to run."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.kube.client import Object


@dataclass(frozen=True)
class RollOut:
    """How far a DaemonSet is."""

    wanted: int
    """Nodes that are to have a pod."""
    available: int
    """Nodes whose pod has been ready for long enough."""
    updated: int
    """Nodes whose pod is of the newest template. None, while nobody has looked at that."""

    @property
    def is_complete(self) -> bool:
        return self.wanted > 0 and min(self.available, self.updated) >= self.wanted


def roll_out_of(daemon_set: Object | None) -> RollOut:
    if daemon_set is None:
        return RollOut(0, 0, 0)
    status = daemon_set.get("status") or {}
    return RollOut(
        status.get("desiredNumberScheduled", 0),
        status.get("numberAvailable", 0),
        status.get("updatedNumberScheduled", 0) if _is_seen(daemon_set) else 0,
    )


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
