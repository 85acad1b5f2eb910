"""Since when: how long nothing has moved towards a node's target, and how long its pod has been ready.

This is remembered, not written down: an operator that is started anew is patient anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from falsework.kube.client import Object
from falsework.operators.static_pod.mirror_pod import MirrorPod
from falsework.operators.static_pod.rollout import Seen


@dataclass
class _Memory:
    target: int
    moved_at: float
    milestones: frozenset[str] = frozenset()
    ready_at: float | None = None


class Progress:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._nodes: dict[str, _Memory] = {}

    def look(self, node: Object, pod: MirrorPod | None, report: Object | None) -> Seen:
        """`report` is what the node's daemon wrote into its ConfigMap."""
        name, target, now = str(node["nodeName"]), int(node.get("targetRevision") or 0), self._clock()
        said = (report or {}).get("data") or {}
        installed, error = _number(said.get("revision")), str(said.get("error") or "")
        memory = self._nodes.get(name)
        if memory is None or memory.target != target:
            memory = self._nodes[name] = _Memory(target, now, ready_at=memory.ready_at if memory else None)
        reached = memory.milestones
        if installed == target and not error:
            reached |= {"written"}
        if pod is not None and pod.revision == target:
            reached |= pod.milestones
        if reached != memory.milestones:
            memory.milestones, memory.moved_at = reached, now
        if pod is None or not pod.ready:
            memory.ready_at = None
        elif memory.ready_at is None:
            memory.ready_at = now
        good = now - memory.ready_at if memory.ready_at is not None else 0.0
        return Seen(pod, installed, error, now - memory.moved_at, good)


def _number(text: object) -> int:
    return int(str(text)) if str(text).isdecimal() else 0
