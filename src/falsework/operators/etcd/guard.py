"""Guards: pods that say whether etcd on their node is ready, and a budget for how many of them may be gone.

Whoever drains a node asks to evict its pods. Static pods cannot be evicted, so it is the guard that is asked for, and
the API refuses while another member is not ready: no two members are taken away at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from falsework.etcd.settings import METRICS_PORT
from falsework.kube.client import APPLY, ApiError, Object, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import POD_DISRUPTION_BUDGETS, PODS
from falsework.manifests.objects import named
from falsework.operators.etcd.pod import NAMESPACE
from falsework.operators.runtime.controller import Wake, always
from falsework.operators.runtime.program import Program

BUDGET = "etcd-guard-pdb"
_LABELS = {"app": "guard"}
_BEGINNING = "etcd-guard-"
_ENDED = ("Failed", "Succeeded")
_SLEEP = "import signal; signal.sigwait({signal.SIGTERM})"


class Guards:
    def __init__(self, program: Program, pods: Informer) -> None:
        self._client = program.client
        self._image = program.images["falsework"]
        self._manager = program.name
        self._pods = pods
        self._budgets = program.follow(POD_DISRUPTION_BUDGETS, NAMESPACE)

    @property
    def wakes(self) -> list[Wake]:
        return [(self._budgets, always), (self._pods, _has_ended)]

    def keep(self, masters: Sequence[Object]) -> None:
        """One for each master that may have pods; of a single member none can be spared, so it needs no guard."""
        if len(masters) < 2:
            return
        wanted = budget(len(masters))
        known = self._budgets.get(BUDGET, NAMESPACE)
        if known is None or known["spec"].get("minAvailable") != wanted["spec"]["minAvailable"]:
            self._client.patch(
                POD_DISRUPTION_BUDGETS, BUDGET, wanted, NAMESPACE, kind=APPLY, field_manager=self._manager
            )
        for node in masters:
            self._keep_guard(str(node["metadata"]["name"]), leaving=bool((node.get("spec") or {}).get("unschedulable")))

    def _keep_guard(self, node: str, *, leaving: bool) -> None:
        """On a node that is being emptied, one that has gone stays gone."""
        known = self._pods.get(f"{_BEGINNING}{node}", NAMESPACE)
        try:
            if known is None and not leaving:
                self._client.create(PODS, guard(node, self._image))
            elif known is not None and (known.get("status") or {}).get("phase") in _ENDED:
                # Its place is free when it is gone, and that is told.
                metadata = known["metadata"]
                self._client.delete(PODS, metadata["name"], NAMESPACE, precondition_uid=metadata["uid"])
        except ApiError as error:
            # It is there already, or gone already: the watch brings it.
            if not error.is_conflict and not error.is_missing:
                raise


def _has_ended(event: WatchEvent) -> str | None:
    gone = event.type == "DELETED" or (event.object.get("status") or {}).get("phase") in _ENDED
    return "" if gone and event.object["metadata"]["name"].startswith(_BEGINNING) else None


def budget(masters: int) -> Object:
    spec = {"minAvailable": masters - 1, "selector": {"matchLabels": _LABELS}}
    return named("policy/v1", "PodDisruptionBudget", BUDGET, NAMESPACE, spec=spec)


def guard(node: str, image: str) -> Object:
    container = {
        "name": "guard",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/python3", "-I", "-S", "-c", _SLEEP],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}},
        "readinessProbe": {
            "httpGet": {"host": "127.0.0.1", "port": METRICS_PORT, "path": "/readyz"},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    result = named("v1", "Pod", f"{_BEGINNING}{node}", NAMESPACE)
    result["metadata"]["labels"] = dict(_LABELS)
    result["spec"] = {
        "nodeName": node,
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 3,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    return result
