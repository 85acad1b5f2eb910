"""How far a DaemonSet is."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.kube.client import Object


@dataclass(frozen=True)
class RollOut:
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
    seen = status.get("observedGeneration", 0) >= daemon_set["metadata"]["generation"]
    return RollOut(
        status.get("desiredNumberScheduled", 0),
        status.get("numberAvailable", 0),
        status.get("updatedNumberScheduled", 0) if seen else 0,
    )
