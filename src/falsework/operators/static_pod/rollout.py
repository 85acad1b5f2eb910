"""Which revision each node is to have next. Nothing here asks the API: it is told what is seen, and says what follows.

A node without any revision gets one at once, however many such nodes there are: nothing runs there that could be lost.
Where one runs, the next comes to one node at a time, and only while the others are good. A revision that does not come
up is taken back on its node and reaches no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from falsework.kube.client import Object
from falsework.operators.runtime.conditions import timestamp
from falsework.operators.static_pod.mirror_pod import MirrorPod
from falsework.operators.static_pod.operand import Operand

INSTALLER_FAILED = "InstallerFailed"
"""The node's daemon could not write it."""
OPERAND_FAILED = "OperandFailedFallback"
"""It was written, and its pod did not come up."""

_FAILURE = (
    "lastFailedRevision",
    "lastFailedTime",
    "lastFailedReason",
    "lastFailedCount",
    "lastFallbackCount",
    "lastFailedRevisionErrors",
)

# Reason → the first pause before it is tried again on that node, by how much pauses grow, and the longest.
_PAUSES = {INSTALLER_FAILED: (10.0, 1.5, 600.0), OPERAND_FAILED: (600.0, 2.0, 7200.0)}


@dataclass(frozen=True)
class Seen:
    """Of one node, at this moment."""

    pod: MirrorPod | None = None
    installed: int = 0
    """The revision its daemon spoke of last."""
    error: str = ""
    """Why the daemon could not install that."""
    idle: float = 0.0
    """Seconds without progress towards the node's target."""
    good: float = 0.0
    """Seconds for which its pod has been ready."""


@dataclass
class Plan:
    nodes: list[Object]
    """The status's nodeStatuses as they are to be."""
    again: float | None = None
    """Seconds until time alone may change something."""
    waits: str = ""
    """Why a node that is behind is not touched now."""
    starts: str = ""
    """The node on which something that runs is replaced by this plan."""
    happened: list[tuple[str, str]] = field(default_factory=list)
    """Reason and message of what is new: for events."""

    def look_again(self, seconds: float) -> None:
        self.again = max(0.0, seconds if self.again is None else min(self.again, seconds))


def plan(
    operand: Operand, nodes: Iterable[Object], latest: int, seen: Mapping[str, Seen], now: datetime, gate: str = ""
) -> Plan:
    """`gate` is the operator's reason not to touch what runs now."""
    result = Plan([dict(node) for node in nodes])
    nothing = Seen()
    for node in result.nodes:
        look = seen.get(node["nodeName"], nothing)
        _arrive(node, look, result)
        if _target(node):
            _fail(operand, node, look, now, result)
    if not latest:
        return result
    bad = any(_failed(node) == latest for node in result.nodes if _current(node) != latest)
    # One that failed elsewhere is no gift for a new node, if there is one that works.
    first = max((_current(node) for node in result.nodes), default=0) if bad else 0
    for node in result.nodes:
        if not _current(node):
            _aim(node, first or latest, result)
        elif _target(node) and _failed(node) != latest:
            _aim(node, latest, result)
    if not any(_target(node) for node in result.nodes):
        _start_one(operand, latest, seen, now, gate, result)
    return result


def _arrive(node: Object, look: Seen, result: Plan) -> None:
    if look.pod is None or not look.pod.ready or not look.pod.revision:
        return
    if _target(node) == look.pod.revision:
        if _current(node) != _target(node):
            result.happened.append(("NodeCurrentRevisionChanged", _moved(node, _target(node))))
        node |= {"currentRevision": _target(node), "targetRevision": 0}
        if _failed(node) <= _current(node):
            for key in _FAILURE:
                node.pop(key, None)
    elif not _current(node):
        # What is known of it was lost, and it works: it is treated with the care of those that work.
        node["currentRevision"] = look.pod.revision


def _fail(operand: Operand, node: Object, look: Seen, now: datetime, result: Plan) -> None:
    target, current = _target(node), _current(node)
    if target == current:
        return  # It is on its way back already.
    if look.error and look.installed == target:
        reason, errors = INSTALLER_FAILED, [look.error]
    elif look.idle >= operand.patience:
        troubles = list(look.pod.troubles) if look.pod else []
        reason = OPERAND_FAILED
        errors = [f"pod/{operand.pod_on(node['nodeName'])} is not ready at revision {target}", *troubles]
    else:
        result.look_again(operand.patience - look.idle)
        return
    again = _failed(node) == target
    if again and not current:
        node["lastFailedRevisionErrors"] = errors
        return
    node |= {
        "lastFailedRevision": target,
        "lastFailedTime": timestamp(now),
        "lastFailedReason": reason,
        "lastFailedCount": (int(node.get("lastFailedCount") or 0) if again else 0) + 1,
        "lastFailedRevisionErrors": errors,
    }
    if current:
        node["targetRevision"] = current
        if reason == OPERAND_FAILED:
            node["lastFallbackCount"] = int(node.get("lastFallbackCount") or 0) + 1
    # A node with nothing to go back to keeps what it has: it may still come up.
    what = f"; going back to revision {current}" if current else ""
    result.happened.append(
        ("InstallerPodFailed", f"Revision {target} failed on {node['nodeName']}: {'; '.join(errors)}{what}")
    )


def _start_one(operand: Operand, latest: int, seen: Mapping[str, Seen], now: datetime, gate: str, result: Plan) -> None:
    behind = [node for node in result.nodes if _current(node) != latest]
    if not behind:
        return
    if failed := [node for node in behind if _failed(node) == latest]:
        node = min(failed, key=_retry_at)
        if (pause := (_retry_at(node) - now).total_seconds()) > 0:
            moment = timestamp(_retry_at(node))
            result.waits = f"revision {latest} failed on {node['nodeName']} and is tried again there at {moment}"
            result.look_again(pause)
            return
    else:
        node = next_node(behind, seen)
    if _is_ready(node, seen) and (waits := _not_now(operand, node, seen, gate, result)):
        result.waits = waits
        return
    result.starts = str(node["nodeName"])
    _aim(node, latest, result)


def next_node(behind: list[Object], seen: Mapping[str, Seen]) -> Object:
    """In OpenShift's order: where the pod is missing, where it is not ready (the oldest first), where another one runs
    than was thought, where the oldest runs."""

    def urgency(node: Object) -> tuple[int, int]:
        pod = seen.get(node["nodeName"], Seen()).pod
        if pod is None:
            return 0, _current(node)
        if not pod.ready:
            return 1, pod.revision
        if pod.revision != _current(node):
            return 2, _current(node)
        return 3, _current(node)

    return min(behind, key=urgency)


def _not_now(operand: Operand, node: Object, seen: Mapping[str, Seen], gate: str, result: Plan) -> str:
    """Why one that works must go on untouched: it may be needed."""
    for other in result.nodes:
        name = str(other["nodeName"])
        if other is node:
            continue
        if not _is_ready(other, seen):
            return f"pod/{operand.pod_on(name)} is not ready"
        if (rest := operand.settle - seen[name].good) > 0:
            result.look_again(rest)
            return f"pod/{operand.pod_on(name)} has not been ready for {operand.settle:.0f} s"
    return gate


def _aim(node: Object, revision: int, result: Plan) -> None:
    if _target(node) == revision or (_current(node) == revision and not _target(node)):
        return
    node["targetRevision"] = revision
    result.happened.append(("NodeTargetRevisionChanged", _moved(node, revision)))


def _moved(node: Object, revision: int) -> str:
    return f'Updating node "{node["nodeName"]}" from revision {_current(node)} to {revision}'


def _is_ready(node: Object, seen: Mapping[str, Seen]) -> bool:
    look = seen.get(node["nodeName"])
    return look is not None and look.pod is not None and look.pod.ready


def _retry_at(node: Object) -> datetime:
    first, growth, longest = _PAUSES.get(str(node.get("lastFailedReason")), _PAUSES[OPERAND_FAILED])
    # So many times that the pause has long been the longest.
    count = min(int(node.get("lastFailedCount") or 1), 20)
    moment = datetime.strptime(str(node["lastFailedTime"]), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return moment + timedelta(seconds=min(first * growth ** (count - 1), longest))


def _current(node: Object) -> int:
    return int(node.get("currentRevision") or 0)


def _target(node: Object) -> int:
    return int(node.get("targetRevision") or 0)


def _failed(node: Object) -> int:
    return int(node.get("lastFailedRevision") or 0)
