"""What the API tells of a static pod: which revision runs, how far it has come, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from falsework.kube.client import Object

REVISION = "revision"
"""The label that says which one a pod is of."""

_ORDINARY = ("PodInitializing", "ContainerCreating")


@dataclass(frozen=True)
class MirrorPod:
    revision: int
    ready: bool
    milestones: frozenset[str] = frozenset()
    """What its start has left behind: there are only ever more of them, however often a container crashes."""
    troubles: tuple[str, ...] = ()


def read(pod: Object) -> MirrorPod:
    status = pod.get("status") or {}
    conditions = status.get("conditions") or ()
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
    label = str((pod["metadata"].get("labels") or {}).get(REVISION) or "")
    return MirrorPod(
        int(label) if label.isdecimal() else 0,
        ready and not pod["metadata"].get("deletionTimestamp"),
        frozenset(_milestones(status)),
        tuple(_troubles(str(pod["metadata"]["name"]), status)),
    )


def _milestones(status: Object) -> Iterator[str]:
    yield "pod"
    for container in status.get("initContainerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode") == 0:
            yield f"{container['name']} finished"
    for container in status.get("containerStatuses") or ():
        if container.get("started"):
            yield f"{container['name']} started"
        if container.get("ready"):
            yield f"{container['name']} ready"


def _troubles(pod: str, status: Object) -> Iterator[str]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            where = f'pod/{pod} container "{container["name"]}"'
            state = container.get("state") or {}
            waiting, ended = state.get("waiting"), state.get("terminated")
            if waiting and waiting.get("reason") not in (*_ORDINARY, None):
                yield f"{where} is waiting: {waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
            elif ended and ended.get("exitCode"):
                said = f"{ended.get('reason', 'Error')}: {ended.get('message', '')}".rstrip(": \n")
                yield f"{where} is terminated: {said} (exit code {ended['exitCode']})"
