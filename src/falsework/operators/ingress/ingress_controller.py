"""Keeps the routes of Ingresses, and tells the Ingresses where they are reached."""

from __future__ import annotations

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Object, WatchEvent
from falsework.kube.informer import Key, key_of
from falsework.kube.resources import INGRESS_CLASSES, KUBE_INGRESSES, ROUTES, SECRETS, SERVICES
from falsework.manifests.operators.ingress import INGRESS_CONTROLLER
from falsework.operators.ingress.ingress_routes import OWNED_BY, is_ours, named_by, routes_of
from falsework.operators.ingress.settings import TLS_SECRETS
from falsework.operators.runtime.conditions import status_of
from falsework.operators.runtime.controller import Wake, always
from falsework.operators.runtime.kept_objects import KeptObjects
from falsework.operators.runtime.program import Program

_REFUSED = (400, 422)
"""How the API says that a route cannot be as it is."""


class IngressController:
    def __init__(self, program: Program) -> None:
        self._client, self._events = program.client, program.events
        self._kept = KeptObjects(program.client, program.events, program.name)
        self._ingresses = program.follow(KUBE_INGRESSES)
        self._classes = program.follow(INGRESS_CLASSES)
        self._routes = program.follow(ROUTES, labels=OWNED_BY)
        self._services = program.follow(SERVICES, keep=_ports_alone)
        # Of Secrets only that they are there: what is in them is read when an Ingress names them.
        self._secrets = program.follow(SECRETS, fields=TLS_SECRETS, keep=_metadata_alone)
        self._needed: set[tuple[str, str, str]] = set()
        self._faults: dict[Key, str] = {}
        self.wakes: list[Wake] = [
            *((informer, always) for informer in (self._ingresses, self._classes, self._routes)),
            (self._services, self._if_needed),
            (self._secrets, self._if_needed),
        ]

    def sync(self, _key: str) -> None:
        classes = {
            body["metadata"]["name"]
            for body in self._classes.objects()
            if (body.get("spec") or {}).get("controller") == INGRESS_CONTROLLER
        }
        ours = [body for body in self._ingresses.objects() if is_ours(body, classes)]
        self._needed = {(kind, key_of(body)[0], name) for body in ours for kind, name in named_by(body)}
        faults: dict[Key, str] = {}
        kept = set()
        for ingress in ours:
            try:
                routes = [self._kept.keep(ROUTES, route, self._routes) for route in self._routes_of(ingress)]
            except FalseworkError as error:
                if isinstance(error, ApiError) and error.status not in _REFUSED:
                    raise
                # Its own fault, and its own alone: what it has been served by stays.
                faults[key_of(ingress)] = error.cause or error.what
                kept |= {key_of(route) for route in self._owned(ingress)}
                continue
            kept |= {key_of(route) for route in routes}
            self._tell(ingress, routes)
        for route in self._routes.objects():
            if key_of(route) not in kept:
                namespace, name = key_of(route)
                self._kept.remove(ROUTES, name, namespace, self._routes)
        self._complain(faults)

    def _complain(self, faults: dict[Key, str]) -> None:
        for (namespace, name), fault in faults.items():
            if self._faults.get((namespace, name)) != fault:
                self._events.warning("IngressRefused", f"Ingress {namespace}/{name} makes no routes: {fault}")
        self._faults = faults

    def _routes_of(self, ingress: Object) -> list[Object]:
        namespace = ingress["metadata"]["namespace"]
        return routes_of(
            ingress,
            lambda name: self._services.get(name, namespace),
            lambda name: self._secret(name, namespace),
        )

    def _owned(self, ingress: Object) -> list[Object]:
        uid = ingress["metadata"]["uid"]
        return [route for route in self._routes.objects() if route["metadata"]["labels"][OWNED_BY] == uid]

    def _secret(self, name: str, namespace: str) -> Object | None:
        try:
            return self._client.get(SECRETS, name, namespace)
        except ApiError as error:
            if not error.is_missing:
                raise
            return None

    def _tell(self, ingress: Object, routes: list[Object]) -> None:
        """Where its routes are served: empty, until a router has taken one."""
        hosts = {
            str(entry["routerCanonicalHostname"])
            for route in routes
            for entry in (route.get("status") or {}).get("ingress") or ()
            if status_of(entry.get("conditions"), "Admitted") and entry.get("routerCanonicalHostname")
        }
        wanted = [{"hostname": host} for host in sorted(hosts)]
        balancer = (ingress.get("status") or {}).get("loadBalancer") or {}
        if (balancer.get("ingress") or []) == wanted:
            return
        body = {**ingress, "status": {"loadBalancer": {"ingress": wanted}}}
        try:
            self._client.replace(KUBE_INGRESSES, body, "status")
        except ApiError as error:
            # Changed or gone meanwhile: the watch brings it, and this is called again.
            if not error.is_conflict and not error.is_missing:
                raise

    def _if_needed(self, event: WatchEvent) -> str | None:
        return "" if (event.object.get("kind"), *key_of(event.object)) in self._needed else None


def _ports_alone(service: Object) -> Object:
    return {**_metadata_alone(service), "spec": {"ports": (service.get("spec") or {}).get("ports")}}


def _metadata_alone(body: Object) -> Object:
    kept = {key: body["metadata"].get(key) for key in ("name", "namespace", "resourceVersion")}
    return {"kind": body.get("kind"), "metadata": kept}
