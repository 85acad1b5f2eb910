"""What an operator says in its operator.openshift.io object: conditions, and whatever else it keeps in the status.

Several controllers of one process write here, each its own part. They take turns, so that they do not refuse one
another; who else writes the object is met with the version that was read.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object, WatchEvent
from falsework.kube.informer import version_of
from falsework.kube.resources import Resource
from falsework.operators.runtime.conditions import Condition, now, updated

NAME = "cluster"
_TRIES = 8


class OperatorStatus:
    def __init__(self, client: Client, resource: Resource, name: str = NAME, namespace: str = "") -> None:
        self._client = client
        self._resource = resource
        self._name = name
        self._namespace = namespace
        self._written: Object | None = None
        self._noticed: Object | None = None
        self._turn = threading.Lock()

    def set(self, *conditions: Condition) -> None:
        """These as they are now; the others stay."""
        self.update(lambda status: {**status, "conditions": updated(status.get("conditions") or [], conditions, now())})

    def update(self, change: Callable[[Object], Object]) -> Object:
        """The object, with the status `change` makes of the one there is. Nothing is written where nothing changes.
        It may be called more than once, and gets a copy of its own."""
        with self._turn:
            for _ in range(_TRIES):
                body = self._newest() or self._client.get(self._resource, self._name, self._namespace)
                status = body.get("status") or {}
                wanted = change(copy.deepcopy(status))
                if wanted == status:
                    return body
                try:
                    self._written = self._client.replace(self._resource, {**body, "status": wanted}, "status")
                except ApiError as error:
                    # What was thought to be the newest is not, or is gone.
                    self._written = self._noticed = None
                    if not error.is_conflict:
                        raise
                else:
                    return self._written
        raise FalseworkError(f"the status of {self._resource.plural}/{self._name} changes too quickly to be written")

    def noticed(self, event: WatchEvent) -> None:
        """The object as somebody has just left it."""
        if event.object["metadata"]["name"] == self._name:
            self._noticed = None if event.type == "DELETED" else event.object

    def _newest(self) -> Object | None:
        known = [body for body in (self._noticed, self._written) if body is not None]
        return max(known, key=lambda body: int(version_of(body)), default=None)
