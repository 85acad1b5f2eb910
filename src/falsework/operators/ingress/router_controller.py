"""Keeps routers on the nodes they are to be on, and says how far that is."""

from __future__ import annotations

from falsework.errors import FalseworkError
from falsework.kube.client import Object, WatchEvent
from falsework.kube.resources import (
    DEPLOYMENTS,
    INGRESS_CONTROLLERS,
    INGRESSES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    SECRETS,
    SERVICES,
)
from falsework.manifests.operators.ingress import CONTROLLER, NAMESPACE, ROUTER_NAMESPACE
from falsework.operators.ingress import deployment
from falsework.operators.ingress.report import conditions_of, refused, status_of_routers
from falsework.operators.ingress.settings import OWN_CERTIFICATE, TLS, TLS_SECRETS, WORKER, Settings, settings_of
from falsework.operators.router.pem import certificate_in
from falsework.operators.runtime.conditions import Condition, now, updated
from falsework.operators.runtime.controller import Wake, always
from falsework.operators.runtime.kept_objects import KeptObjects
from falsework.operators.runtime.program import Program


class RouterController:
    def __init__(self, program: Program) -> None:
        assert program.status is not None
        self._status = program.status
        self._kept = KeptObjects(program.client, program.events, program.name)
        self._images = program.images["falsework"], program.images["haproxy"]
        self._controllers = program.follow(INGRESS_CONTROLLERS, NAMESPACE)
        self._configs = program.follow(INGRESSES)
        self._workers = program.follow(NODES, labels=WORKER, keep=_name_alone)
        self._deployments = program.follow(DEPLOYMENTS, ROUTER_NAMESPACE)
        self._services = program.follow(SERVICES, ROUTER_NAMESPACE)
        self._budgets = program.follow(POD_DISRUPTION_BUDGETS, ROUTER_NAMESPACE)
        self._certificates = program.follow(SECRETS, ROUTER_NAMESPACE, fields=TLS_SECRETS)
        followed = (self._controllers, self._configs, self._deployments, self._services, self._budgets)
        self.wakes: list[Wake] = [(informer, always) for informer in (*followed, self._certificates)]
        self.wakes.append((self._workers, _if_counted))

    def sync(self, _key: str) -> None:
        controller = self._controllers.get(CONTROLLER, NAMESPACE)
        if controller is None:
            return
        try:
            settings = settings_of(controller, self._configs.get("cluster"), len(self._workers.objects()))
            self._check_certificate(settings.certificate)
        except FalseworkError as error:
            self._say(refused(error), {})
            raise
        live = self._kept.keep(DEPLOYMENTS, deployment.deployment(settings, *self._images), self._deployments)
        self._kept.keep(SERVICES, deployment.service(), self._services)
        self._kept.keep(POD_DISRUPTION_BUDGETS, deployment.disruption_budget(), self._budgets)
        self._report(settings, live, controller["metadata"]["generation"])

    def _check_certificate(self, name: str) -> None:
        """Routers that began with one that is not there would not serve at all."""
        if name != OWN_CERTIFICATE:
            where = f"Secret {ROUTER_NAMESPACE}/{name} of type {TLS}"
            certificate_in(self._certificates.get(name, ROUTER_NAMESPACE), where)

    def _report(self, settings: Settings, live: Object, generation: int) -> None:
        self._say(conditions_of(settings, live), status_of_routers(settings, live, generation))

    def _say(self, conditions: list[Condition], rest: Object) -> None:
        def change(status: Object) -> Object:
            return {**status, **rest, "conditions": updated(status.get("conditions") or [], conditions, now())}

        self._status.update(change)


def _if_counted(event: WatchEvent) -> str | None:
    """How nodes are is said all the time; how many there are seldom changes."""
    return None if event.type == "MODIFIED" else ""


def _name_alone(node: Object) -> Object:
    return {"metadata": {key: node["metadata"].get(key) for key in ("name", "resourceVersion")}}
