"""Keeps whoever drains nodes from taking more masters away than the operand can lose.

A static pod cannot be evicted, so nobody asks before its node is drained. Beside each stands a guard, an ordinary pod
that is ready as long as its static pod answers; and a PodDisruptionBudget says that at most one guard may be missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from falsework.kube.client import APPLY, ApiError, Object
from falsework.kube.informer import Informer
from falsework.kube.resources import POD_DISRUPTION_BUDGETS, PODS
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod.operand import OBJECT, Operand

LABELS = {"app": "guard"}


@dataclass(frozen=True)
class Guard:
    image: str
    """One that does nothing for ever: what the container runtime holds a pod's namespaces with."""
    port: int
    path: str
    scheme: str
    """Where the static pod says on its node's loopback that it is ready."""
    after: float = 60.0
    """Seconds for which all must have been well: a control plane that is being formed has better things to do."""
    wanted: Callable[[], bool] = lambda: True
    """What else must be so before there are guards."""


class GuardController:
    def __init__(
        self,
        program: Program,
        operand: Operand,
        guard: Guard,
        own: Informer,
        nodes: Informer,
        pods: Informer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = program.client
        self._operand = operand
        self._guard = guard
        self._own, self._nodes, self._pods = own, nodes, pods
        self.budgets = program.follow(POD_DISRUPTION_BUDGETS, operand.namespace)
        self._clock = clock
        self._well_since: float | None = None

    def sync(self, _: str) -> float | None:
        masters = {str(node["metadata"]["name"]): node for node in self._nodes.objects()}
        if len(masters) < 2 or not _is_well(self._own.get(OBJECT) or {}) or not self._guard.wanted():
            self._well_since = None
            return None
        if self._well_since is None:
            self._well_since = self._clock()
        if (rest := self._well_since + self._guard.after - self._clock()) > 0:
            return rest
        self._keep_budget(len(masters) - 1)
        for name, node in masters.items():
            # One that is being emptied would only have to be emptied again.
            if not (node.get("spec") or {}).get("unschedulable") and not node["metadata"].get("deletionTimestamp"):
                self._keep_guard(name)
        return None

    def _keep_budget(self, least: int) -> None:
        name = f"{self._operand.name}-guard-pdb"
        spec = {
            "minAvailable": least,
            "selector": {"matchLabels": LABELS},
            # A node whose static pod is down already may go.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        }
        known = self.budgets.get(name, self._operand.namespace) or {}
        if known.get("spec") != spec:
            body = {
                "apiVersion": POD_DISRUPTION_BUDGETS.api_version,
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": self._operand.namespace},
                "spec": spec,
            }
            self._client.patch(POD_DISRUPTION_BUDGETS, name, body, self._operand.namespace, kind=APPLY)

    def _keep_guard(self, node: str) -> None:
        wanted = self._pod(node)
        known = self._pods.get(wanted["metadata"]["name"], self._operand.namespace)
        try:
            if known is None:
                self._client.create(PODS, wanted)
            elif _is_spent(known, self._guard) and not known["metadata"].get("deletionTimestamp"):
                # The next look, which its end brings about, makes a new one.
                uid = str(known["metadata"]["uid"])
                self._client.delete(PODS, known["metadata"]["name"], self._operand.namespace, precondition_uid=uid)
        except ApiError as error:
            # What is followed is behind what there is.
            if not error.is_conflict and not error.is_missing:
                raise

    def _pod(self, node: str) -> Object:
        guard = self._guard
        answer = {"host": "127.0.0.1", "port": guard.port, "path": guard.path, "scheme": guard.scheme}
        container = {
            "name": "guard",
            "image": guard.image,
            "imagePullPolicy": "IfNotPresent",
            "resources": {"requests": {"cpu": "1m", "memory": "5Mi"}},
            "readinessProbe": {"httpGet": answer, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{self._operand.name}-guard-{node}",
                "namespace": self._operand.namespace,
                "labels": LABELS,
            },
            "spec": {
                "nodeName": node,
                "hostNetwork": True,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "priorityClassName": "system-cluster-critical",
                "terminationGracePeriodSeconds": 3,
                "tolerations": [{"operator": "Exists"}],
                "containers": [container],
            },
        }


def _is_well(own: Object) -> bool:
    """Whether every master has the latest revision, and none is on its way to one."""
    status = own.get("status") or {}
    latest, nodes = status.get("latestAvailableRevision"), status.get("nodeStatuses") or ()
    return bool(nodes) and all(
        node.get("currentRevision") == latest and not node.get("targetRevision") for node in nodes
    )


def _is_spent(pod: Object, guard: Guard) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
    return ended or pod["spec"]["containers"][0]["image"] != guard.image
