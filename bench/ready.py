"""Waiting for nodes and pods, as the API tells of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object
from falsework.kube.informer import follow
from falsework.kube.resources import Resource

_PATIENCE = 600.0


def await_ready(client: Client, resource: Resource, wanted: int) -> int:
    """Until at least so many are there and all there are are Ready; how many that is."""
    changed = threading.Event()
    informer = follow(client, resource, lambda _: changed.set())
    deadline = time.monotonic() + _PATIENCE
    try:
        while True:
            changed.clear()
            ready = [is_ready(body) for body in informer.objects()]
            if len(ready) >= wanted and all(ready):
                return len(ready)
            if not changed.wait(deadline - time.monotonic()):
                raise FalseworkError(
                    f"of {wanted} {resource.plural}, {len(ready)} are there and {sum(ready)} are Ready",
                    cause=f"nothing more has come in {_PATIENCE:.0f} s",
                )
    finally:
        informer.stop()


def is_ready(body: Object) -> bool:
    """A node or a pod."""
    conditions: Iterable[Object] = body.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
