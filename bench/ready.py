"""Waiting for nodes and pods, as the API tells of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Self

from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import Resource

_PATIENCE = 600.0


class AllReady:
    """Followed as long as the block lasts: until at least so many are there, and all there are are Ready."""

    def __init__(self, client: Client, resource: Resource, wanted: int) -> None:
        self._resource = resource
        self._wanted = wanted
        self._moment = 0.0
        self._reached = threading.Event()
        self._informer = Informer(client, resource, self._look)

    def __enter__(self) -> Self:
        self._informer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._informer.stop()

    def wait(self) -> float:
        """When it was so for the first time, in seconds since 1970."""
        if not self._reached.wait(_PATIENCE):
            ready = self._ready()
            raise FalseworkError(
                f"of {self._wanted} {self._resource.plural}, {len(ready)} are there and {sum(ready)} are Ready",
                cause=f"that is all that came of it in {_PATIENCE:.0f} s",
            )
        return self._moment

    def _look(self, _: WatchEvent) -> None:
        ready = self._ready()
        if len(ready) >= self._wanted and all(ready) and not self._reached.is_set():
            self._moment = time.time()
            self._reached.set()

    def _ready(self) -> list[bool]:
        return [is_ready(body) for body in self._informer.objects()]


def is_ready(body: Object) -> bool:
    """A node or a pod."""
    conditions: Iterable[Object] = body.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
