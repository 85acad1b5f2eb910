"""Taking the pods off a node, as `kubectl drain` does: asked, not told, so that disruption budgets are kept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus

from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object
from falsework.kube.informer import Informer
from falsework.kube.resources import NODES, PERSISTENT_VOLUMES, PODS

_MIRROR = "kubernetes.io/config.mirror"
_HOSTNAME = "kubernetes.io/hostname"
_AGAIN = 1.0
"""Seconds between two tries of what a budget forbids: it may allow it as soon as another pod is ready."""


def cordon(client: Client, node: str) -> None:
    client.patch(NODES, node, {"spec": {"unschedulable": True}})


def losses(client: Client, node: str) -> list[str]:
    """What would be gone for good: pods that nobody makes again, and data that is on this node alone."""
    pods = client.list(PODS, fields=f"spec.nodeName={node}").items
    volumes = client.list(PERSISTENT_VOLUMES).items
    return [
        *(f"nobody makes the pod {_place(pod)} again" for pod in pods if _has_to_go(pod) and _owner(pod) is None),
        *(f"the data of {_claim(volume)} is on this node alone" for volume in volumes if _is_only_on(volume, node)),
    ]


@dataclass(frozen=True)
class Drain:
    client: Client
    node: str
    say: Callable[[str], None]
    """Told what is waited for, when that changes."""
    timeout: float

    def run(self) -> None:
        """Until no pod is left but those that belong to the node. FalseworkError names those that stay, and why."""
        changed = threading.Event()
        informer = Informer(
            self.client, PODS, lambda _: changed.set(), fields=f"spec.nodeName={self.node}", keep=_remembered
        )
        informer.start()
        try:
            self._until_empty(informer, changed)
        finally:
            informer.stop()

    def _until_empty(self, informer: Informer, changed: threading.Event) -> None:
        deadline, told = time.monotonic() + self.timeout, ""
        held: dict[str, str] = {"": "the API does not say which pods there are"}
        while time.monotonic() < deadline:
            changed.clear()
            if informer.wait_synced(_AGAIN):
                left = [pod for pod in informer.objects() if _has_to_go(pod)]
                if not left:
                    return
                held = {_place(pod): self._evict(pod) for pod in left}
                if (said := _told(held)) != told:
                    self.say(said)
                    told = said
                changed.wait(_AGAIN)
        raise FalseworkError(
            f"{self.node} could not be drained within {self.timeout:.0f} s",
            cause=_told(held),
            fix="see to what holds them up, or give it more time with --timeout; --force goes on without them",
        )

    def _evict(self, pod: Object) -> str:
        """Why it is still there."""
        metadata = pod["metadata"]
        if metadata.get("deletionTimestamp"):
            return "it is ending"
        path = PODS.path(metadata["namespace"], metadata["name"], "eviction")
        names = {"name": metadata["name"], "namespace": metadata["namespace"]}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": names}
        status, content = self.client.raw("POST", path, body)
        if status in (HTTPStatus.OK, HTTPStatus.CREATED):
            return "it is ending"
        return "" if status == HTTPStatus.NOT_FOUND else _objection(status, content)


def _objection(status: int, content: bytes) -> str:
    """What the API says against an eviction: the budget, if it is one."""
    try:
        body = json.loads(content)
        causes = [str(cause["message"]) for cause in (body.get("details") or {}).get("causes") or ()]
        return "; ".join(causes) or str(body.get("message") or status)
    except (ValueError, TypeError, KeyError, AttributeError):
        return f"the API answers {status}"


def _told(held: dict[str, str]) -> str:
    return "; ".join(f"{pod}: {why}" if pod else why for pod, why in sorted(held.items()) if why)


def _has_to_go(pod: Object) -> bool:
    """A static pod's mirror goes with the node, a DaemonSet's pod would come back, and one that has ended is none."""
    if _MIRROR in (pod["metadata"].get("annotations") or {}):
        return False
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    return _owner(pod) != "DaemonSet"


def _owner(pod: Object) -> str | None:
    """The kind of what makes it again when it is gone."""
    owners: Iterable[Object] = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner["kind"]) for owner in owners if owner.get("controller")), None)


def _is_only_on(volume: Object, node: str) -> bool:
    if (volume.get("status") or {}).get("phase") != "Bound":
        return False
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    expressions = [
        expression
        for term in required.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
    ]
    return any(
        expression.get("key") == _HOSTNAME and expression.get("operator") == "In" and expression["values"] == [node]
        for expression in expressions
    )


def _claim(volume: Object) -> str:
    claim = volume["spec"].get("claimRef") or {}
    return f"the claim {claim.get('namespace')}/{claim.get('name')}"


def _place(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _remembered(pod: Object) -> Object:
    return {"metadata": pod["metadata"], "status": {"phase": (pod.get("status") or {}).get("phase")}}
