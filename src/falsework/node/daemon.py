"""Follows what the operators want on this node, puts it in place, and says how that went."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Object, Unreachable, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import (
    CONFIG_MAPS,
    ETCDS,
    KUBE_API_SERVERS,
    KUBE_CONTROLLER_MANAGERS,
    KUBE_SCHEDULERS,
    Resource,
)
from falsework.node.static_pods import Revision, StaticPods, fetch
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod.operand import OBJECT, REPORT
from falsework.operators.static_pod.pruning import prunable


@dataclass(frozen=True)
class Wanted:
    """An operand as this daemon needs to know it: what it is made of, each revision says itself."""

    operand: str
    namespace: str
    resource: Resource


OPERANDS = (
    Wanted("etcd", "openshift-etcd", ETCDS),
    Wanted("kube-apiserver", "openshift-kube-apiserver", KUBE_API_SERVERS),
    Wanted("kube-controller-manager", "openshift-kube-controller-manager", KUBE_CONTROLLER_MANAGERS),
    Wanted("kube-scheduler", "openshift-kube-scheduler", KUBE_SCHEDULERS),
)


def add_installers(program: Program, node: str, static_pods: StaticPods) -> None:
    """One for each operand: none waits for another."""
    for wanted in OPERANDS:
        installer = Installer(program, wanted, program.follow(wanted.resource), node, static_pods)
        name = "".join(part.capitalize() for part in wanted.operand.split("-"))
        program.add(Controller(f"{name}Installer", installer.sync, [(installer.own, installer.is_news)]))


class Installer:
    def __init__(self, program: Program, wanted: Wanted, own: Informer, node: str, static_pods: StaticPods) -> None:
        self.own = own
        """The operator's object."""
        self._client = program.client
        self._events = program.events
        self._wanted = wanted
        self._node = node
        self._static_pods = static_pods
        self._noticed = 0
        self._installed: Revision | None = None
        self._reported: Object | None = None

    def is_news(self, event: WatchEvent) -> str | None:
        """Operators write much into their objects that is nothing to this node."""
        revision = self._revision(event.object)
        if revision == self._noticed:
            return None
        self._noticed = revision
        return ""

    def sync(self, _: str) -> None:
        own = self.own.get(OBJECT)
        revision = self._revision(own) if own else 0
        if own is None or not revision:
            return
        try:
            self._install(revision)
        except FalseworkError as error:
            if not _passes(error):
                self._report(revision, f"{error.what}: {error.cause}" if error.cause else error.what)
            raise
        self._report(revision, "")
        self._prune(own, revision)

    def _install(self, revision: int) -> None:
        known = self._installed
        if known is not None and known.number == revision and self._static_pods.has(known):
            return
        operand = self._wanted.operand
        made = Revision.of(operand, revision, fetch(self._client, self._wanted.namespace, revision))
        if self._static_pods.put(made):
            self._events.normal("StaticPodInstalled", f"Revision {revision} of {operand} is in place on {self._node}")
        self._installed = made

    def _report(self, revision: int, error: str) -> None:
        data = {"revision": str(revision), "error": error[:1000]}
        if data == self._reported:
            return
        name, namespace = f"{REPORT}{self._node}", self._wanted.namespace
        try:
            self._client.patch(CONFIG_MAPS, name, {"data": data}, namespace)
        except ApiError as trouble:
            if not trouble.is_missing:
                raise
            metadata = {"name": name, "namespace": namespace}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            self._client.create(CONFIG_MAPS, body)
        self._reported = data

    def _prune(self, own: Object, revision: int) -> None:
        status = own.get("status") or {}
        mine = {**own, "status": {**status, "nodeStatuses": [self._entry(own)]}}

        def unwanted(here: list[int]) -> list[int]:
            return [number for number in prunable(here, mine) if number != revision]

        self._static_pods.prune(self._wanted.operand, unwanted)

    def _revision(self, own: Object) -> int:
        """The one this node is on its way to, or has."""
        entry = self._entry(own)
        return int(entry.get("targetRevision") or entry.get("currentRevision") or 0)

    def _entry(self, own: Object) -> Object:
        nodes = (own.get("status") or {}).get("nodeStatuses") or ()
        return next((entry for entry in nodes if entry["nodeName"] == self._node), {"nodeName": self._node})


def _passes(error: FalseworkError) -> bool:
    """Whether it says more about the API at this moment than about the revision."""
    busy = isinstance(error, ApiError) and (error.status == 429 or error.status >= 500)
    return busy or isinstance(error, Unreachable)
