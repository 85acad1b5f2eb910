"""Roles of Nodes while the bootstrap machine is at work: the first operators can run only where a master is known as
one, so this does not wait for an operator."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from falsework.bootstrap.waiting import Say
from falsework.config_server.records import configs_in
from falsework.errors import FalseworkError
from falsework.kube.client import Client, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import NODES
from falsework.node_roles.assigner import assign, masters_schedulable, remembered
from falsework.site.model import Role
from falsework.work_queue import WorkQueue

_LOOK = 60.0
_AGAIN = 0.3
_SCHEDULER_LATER = 1.0
"""Seconds until we ask again whether masters are for everybody, while the cluster does not say."""


class NodeRoles:
    """In a thread of its own: a crowd of certificate requests holds up no Node."""

    def __init__(self, client: Client, roles: Mapping[str, Role], served: Path, say: Say) -> None:
        self._client = client
        self._roles = roles
        self._served = served
        self._say = say
        self._queue = WorkQueue()
        self._nodes = Informer(client, NODES, self._changed, keep=remembered)
        self._thread = threading.Thread(target=self._work, name="node roles", daemon=True)
        self._said: dict[str, str] = {}

    def __enter__(self) -> None:
        self._nodes.start()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._queue.close()
        self._nodes.stop()
        self._thread.join()

    def _changed(self, change: WatchEvent) -> None:
        self._queue.add(str(change.object["metadata"]["name"]))

    def _work(self) -> None:
        while not self._queue.is_closed:
            name = self._queue.take(_LOOK)
            if name is not None:
                self._attend_to(name)

    def _attend_to(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        try:
            schedulable = masters_schedulable(self._client)
            done = assign(self._client, node, self._roles, schedulable, lambda node: configs_in(self._served).get(node))
        except FalseworkError as error:
            # Changed meanwhile, or no API: the one is seen soon, the other asked again.
            self._tell(name, f"Node {name} has no role yet: {error.what}")
            self._queue.add(name, _AGAIN)
            return
        if done:
            self._tell(name, done)
        if schedulable is None:
            self._queue.add(name, _SCHEDULER_LATER)

    def _tell(self, name: str, text: str) -> None:
        if self._said.get(name) != text:
            self._said[name] = text
            self._say(text)
