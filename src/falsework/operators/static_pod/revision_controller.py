"""Makes a revision when the inputs are no longer those of the latest one.

First the revision's ConfigMap, then copies of all inputs that belong to it, then the mark that it is complete, then its
number in the operator's status. Ended between any two of these, it goes on, or begins that revision again: nobody uses
one before its number is in the status.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, SECRETS, Resource
from falsework.operators.runtime.operator_status import OperatorStatus
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod import inputs
from falsework.operators.static_pod.operand import OBJECT, Operand

CALM = 1.0
"""Seconds the inputs must have been the same before what runs is replaced: several of them often change together."""


class RevisionController:
    def __init__(
        self,
        program: Program,
        status: OperatorStatus,
        operand: Operand,
        own: Informer,
        config_maps: Informer,
        secrets: Informer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = program.client
        self._events = program.events
        self._status = status
        self._operand = operand
        self._own = own
        self._followed = (config_maps, secrets)
        self._clock = clock
        self._restless: tuple[object, float] = ("", 0.0)

    def sync(self, _: str) -> float | None:
        own = self._own.get(OBJECT)
        if own is None:
            raise FalseworkError(f"{self._operand.resource.plural}/{OBJECT} is not there")
        forced = str((own.get("spec") or {}).get("forceRedeploymentReason") or "")
        if self._is_current(own, forced):
            return None
        # What is followed may be behind what was written a moment ago: a revision is made from the API's own word.
        seen = inputs.world(*(self._listed(resource) for resource in (CONFIG_MAPS, SECRETS)))
        self._require_all(seen)
        latest = max(_latest(self._status.update(lambda status: status)), inputs.newest_finished(seen))
        if reason := inputs.difference(self._operand, seen, latest, forced):
            if latest and (rest := self._still_restless(seen, latest)) > 0:
                return rest
            latest += 1
            self._make(latest, reason, forced, seen)
        self._status.update(lambda status: {**status, "latestAvailableRevision": latest})
        return None

    def _is_current(self, own: Object, forced: str) -> bool:
        seen = inputs.world(*(informer.objects() for informer in self._followed))
        self._require_all(seen)
        latest = _latest(own)
        return latest == inputs.newest_finished(seen) and not inputs.difference(self._operand, seen, latest, forced)

    def _require_all(self, seen: inputs.World) -> None:
        if absent := inputs.missing(self._operand, seen):
            raise FalseworkError(f"no revision can be made in {self._operand.namespace} without {', '.join(absent)}")

    def _still_restless(self, seen: inputs.World, latest: int) -> float:
        state, now = inputs.contents(self._operand, seen), self._clock()
        if self._restless[0] != (latest, state):
            self._restless = ((latest, state), now)
        return self._restless[1] + CALM - now

    def _make(self, revision: int, reason: str, forced: str, seen: inputs.World) -> None:
        owner = _put(self._client, CONFIG_MAPS, inputs.status_object(self._operand, revision, reason, forced))
        for resource, body in inputs.copies(self._operand, seen, revision, owner):
            _put(self._client, resource, body)
        ready = {"metadata": {"annotations": {inputs.READY: "true"}}}
        self._client.patch(CONFIG_MAPS, inputs.status_name(revision), ready, self._operand.namespace)
        self._events.normal("RevisionCreate", f"Revision {revision} created because {reason}")

    def _listed(self, resource: Resource) -> list[Object]:
        return self._client.list(resource, self._operand.namespace).items


def _latest(own: Object) -> int:
    return int((own.get("status") or {}).get("latestAvailableRevision") or 0)


def _put(client: Client, resource: Resource, body: Object) -> Object:
    """Made, or put in the place of what one that ended half-way had left."""
    try:
        return client.create(resource, body)
    except ApiError as error:
        if not error.is_conflict:
            raise
    return client.replace(resource, body)
