"""What the cluster's API has, followed from the first question on: whoever waits asks often, and the API only once."""

from __future__ import annotations

import time
from typing import Any

from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object
from falsework.kube.informer import Informer
from falsework.kube.resources import Resource

PATIENCE = 2.0
"""Seconds for the first answer; an API that is there needs a hundredth of it."""
_TICK = 0.01


class Cluster:
    def __init__(self, client: Client) -> None:
        self.client = client
        self._followed: dict[tuple[Resource, str, str], _Followed] = {}

    def one(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._view(resource, namespace, f"metadata.name={name}").get(name, namespace)

    def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        """Those of a namespace, or of all."""
        return self._view(resource, namespace, "").objects()

    def close(self) -> None:
        for followed in self._followed.values():
            followed.informer.stop()

    def _view(self, resource: Resource, namespace: str, fields: str) -> Informer:
        key = (resource, namespace, fields)
        if key not in self._followed:
            self._followed[key] = _Followed(self.client, resource, namespace, fields)
        return self._followed[key].known()


class _Followed:
    """One kind of objects. Until they are known for the first time, a question is answered with why they are not."""

    def __init__(self, client: Client, resource: Resource, namespace: str, fields: str) -> None:
        self._trouble: FalseworkError | None = None
        self._url = client.url
        self.informer = Informer(client, resource, namespace=namespace, fields=fields, on_trouble=self._note).start()

    def known(self) -> Informer:
        deadline = time.monotonic() + PATIENCE
        while not self.informer.wait_synced(_TICK):
            if self._trouble is not None:
                raise self._trouble
            if time.monotonic() > deadline:
                raise FalseworkError(f"{self._url} does not answer", cause=f"it said nothing for {PATIENCE:.0f} s")
        return self.informer

    def _note(self, trouble: FalseworkError) -> None:
        self._trouble = trouble


def condition_of(body: Object | None, kind: str) -> dict[str, Any] | None:
    """The condition of this type in an object's status."""
    conditions = ((body or {}).get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry.get("type") == kind), None)


def is_true(body: Object | None, kind: str) -> bool:
    return (condition_of(body, kind) or {}).get("status") == "True"


def told(body: Object | None, kind: str) -> str:
    """A condition in words: `EtcdMembersAvailable=False (NoQuorum): …`."""
    found = condition_of(body, kind)
    if found is None:
        return f"no condition {kind} yet"
    reason = f" ({found['reason']})" if found.get("reason") else ""
    message = f": {found['message']}" if found.get("message") else ""
    return f"{kind}={found.get('status')}{reason}{message}"
