"""From the cluster's routes to what HAProxy serves, and from there to what the routes' status says."""

from __future__ import annotations

import time
from collections.abc import Sequence

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Object, WatchEvent
from falsework.kube.informer import Key, key_of
from falsework.kube.resources import ENDPOINT_SLICES, ROUTES, SECRETS
from falsework.operators.router.admission import Router, status_with
from falsework.operators.router.config import Config, Place, serving
from falsework.operators.router.endpoints import by_service, service_of
from falsework.operators.router.pem import certificate_in
from falsework.operators.router.proxy import Proxy, RefusedError
from falsework.operators.router.routes import NOT_ADMITTED, Refusal, Route, judged, named_host
from falsework.operators.runtime.conditions import now
from falsework.operators.runtime.controller import always
from falsework.operators.runtime.program import Program

RELOAD_EVERY = 2.0
"""Seconds between two reloads: what changes meanwhile is in the next one."""


class RouterController:
    def __init__(self, program: Program, router: Router, place: Place, proxy: Proxy, certificate: str) -> None:
        """`certificate` is the Secret, beside this pod, of what hosts show whose routes bring none."""
        self._client, self._log = program.client, program.log
        self._router, self._place, self._proxy = router, place, proxy
        self._certificate, self._namespace = certificate, program.namespace
        self._routes = program.follow(ROUTES, keep=_kept_route)
        self._slices = program.follow(ENDPOINT_SLICES, keep=_kept_slice)
        self._secrets = program.follow(SECRETS, program.namespace, fields=f"metadata.name={certificate}")
        self._shown = ""
        """The certificate of the domain, as long as there is no better one."""
        self._services: set[Key] = set()
        self._served: dict[Key, Route] = {}
        self._unfit: dict[Key, tuple[str, Refusal]] = {}
        """Routes HAProxy would not have, as they were when it said so: uid and generation."""
        self._reload_from = 0.0
        self.wakes = [(self._routes, always), (self._slices, self._if_used), (self._secrets, always)]

    def sync(self, _key: str) -> float | None:
        fault = self._look_at_certificate()
        if fault is not None and not self._shown:
            raise fault
        bodies = [self._with_host(body) for body in self._routes.objects()]
        self._unfit = {
            key_of(body): self._unfit[key_of(body)]
            for body in bodies
            if self._unfit.get(key_of(body), ("",))[0] == _mark(body)
        }
        verdicts = judged(bodies, {key: refusal for key, (_, refusal) in self._unfit.items()})
        self._services = {(route.namespace, to.service) for route in verdicts.admitted for to in route.targets}
        config = self._config(verdicts.admitted)
        if self._proxy.needs_reload(config) and (left := self._reload_from - time.monotonic()) > 0:
            return left
        try:
            self._use(config, verdicts.admitted)
        except RefusedError:
            self._sort_out(bodies, verdicts.admitted)
            # A host whose owner is out of the way belongs to another one now.
            return 0.0
        for body in bodies:
            self._tell(body, verdicts.refused.get(key_of(body)))
        if fault is not None:
            # Routes are served all the same, but whoever looks is to know.
            raise fault
        return None

    def _look_at_certificate(self) -> FalseworkError | None:
        """Why it cannot be what the Secret holds: then it stays what it was."""
        secret = self._secrets.get(self._certificate, self._namespace)
        try:
            self._shown = certificate_in(secret, f"Secret {self._namespace}/{self._certificate}")
        except FalseworkError as error:
            return error
        return None

    def _use(self, config: Config, routes: Sequence[Route]) -> None:
        began = time.monotonic()
        if self._proxy.use(config):
            took = time.monotonic() - began
            self._reload_from = time.monotonic() + RELOAD_EVERY
            self._log.info(f"HAProxy serves {len(routes)} routes after a reload", seconds=round(took, 3))
        self._served = {route.key: route for route in routes}

    def _config(self, routes: Sequence[Route]) -> Config:
        return serving(self._place, routes, by_service(self._slices.objects()), self._shown.encode())

    def _sort_out(self, bodies: Sequence[Object], routes: Sequence[Route]) -> None:
        """Which of the routes that are new or changed it is. The others go on being served."""
        good = [route for route in routes if self._served.get(route.key) == route]
        suspects = [route for route in routes if self._served.get(route.key) != route]
        # If it does not take these either, it is no route's fault: such as a port somebody else has.
        self._use(self._config(good), good)
        refused = self._refused_among(good, suspects)
        marks = {key_of(body): _mark(body) for body in bodies}
        for route in refused:
            self._log.warning(f"HAProxy does not take the route {route.namespace}/{route.name}")
            refusal = Refusal(NOT_ADMITTED, "the proxy does not take what is made of this route: see its log")
            self._unfit[route.key] = (marks[route.key], refusal)

    def _refused_among(self, good: Sequence[Route], suspects: Sequence[Route]) -> list[Route]:
        try:
            self._use(self._config([*good, *suspects]), [*good, *suspects])
        except RefusedError:
            if len(suspects) <= 1:
                return list(suspects)
            half = len(suspects) // 2
            refused = self._refused_among(good, suspects[:half])
            taken = [route for route in suspects[:half] if route not in refused]
            return refused + self._refused_among([*good, *taken], suspects[half:])
        return []

    def _with_host(self, body: Object) -> Object:
        if body["spec"].get("host") or not (host := named_host(body, self._router.domain)):
            return body
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        # Only of this version: whoever gives it another host at this moment is right.
        patch = {"metadata": {"resourceVersion": body["metadata"]["resourceVersion"]}, "spec": {"host": host}}
        try:
            return self._client.patch(ROUTES, name, patch, namespace)
        except ApiError as error:
            if not error.is_conflict and not error.is_missing:
                raise
            # Somebody was quicker, perhaps another router: the watch brings what it is now.
            return {**body, "spec": {**body["spec"], "host": host}}

    def _tell(self, body: Object, refusal: Refusal | None) -> None:
        status = status_with(body, self._router, refusal, now())
        if status == (body.get("status") or {}):
            return
        try:
            self._client.replace(ROUTES, {**body, "status": status}, "status")
        except ApiError as error:
            # Another router has said so already, or it is another one by now: the watch brings it.
            if not error.is_conflict and not error.is_missing:
                raise

    def _if_used(self, event: WatchEvent) -> str | None:
        return "" if service_of(event.object) in self._services else None


def _mark(body: Object) -> str:
    return f"{body['metadata']['uid']}/{body['metadata'].get('generation', 0)}"


def _kept_route(body: Object) -> Object:
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "managedFields"}}


def _kept_slice(body: Object) -> Object:
    """Of all that is said of pods, where they are and whether they are ready."""
    metadata = {key: body["metadata"].get(key) for key in ("name", "namespace", "resourceVersion", "labels")}
    endpoints = [
        {"addresses": one["addresses"], "conditions": {"ready": (one.get("conditions") or {}).get("ready")}}
        for one in body.get("endpoints") or ()
    ]
    return {
        "metadata": metadata,
        "addressType": body.get("addressType"),
        "ports": body.get("ports"),
        "endpoints": endpoints,
    }
