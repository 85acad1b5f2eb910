"""A cluster whose API has what a test says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from falsework.errors import FalseworkError
from falsework.kube.client import Object, Unreachable
from falsework.kube.cluster import Cluster
from falsework.kube.resources import CLUSTER_OPERATORS, CONFIG_MAPS, ETCDS, NODES, Resource
from falsework.site.load import default_site

SITE = default_site()
Conditions = dict[str, str]


class ToldClient:
    url = "https://api.lab.falsework.test:6443"

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = [(200, b'{"gitVersion": "v1.2.3"}')]

    def raw(self, _method: str, _path: str) -> tuple[int, bytes]:
        if not self.answers:
            raise Unreachable("connection refused")
        return self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)


class ToldCluster(Cluster):
    def __init__(self) -> None:
        self.objects: dict[Resource, dict[str, Object]] = {}
        self.trouble: FalseworkError | None = None
        self.client: Any = ToldClient()

    def one(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        if self.trouble:
            raise self.trouble
        return self.objects.get(resource, {}).get(name)

    def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        if self.trouble:
            raise self.trouble
        return list(self.objects.get(resource, {}).values())

    def close(self) -> None:
        pass

    def has(self, resource: Resource, name: str, conditions: Conditions | None = None, **parts: Any) -> None:
        status = parts.pop("status", {})
        listed = [
            {"type": kind, "status": value, "reason": "R", "message": "m"} for kind, value in (conditions or {}).items()
        ]
        body = {"metadata": {"name": name}, **parts, "status": {**status, "conditions": listed}}
        self.objects.setdefault(resource, {})[name] = body

    def has_voters(self, count: int) -> None:
        addresses = [str(machine.address) for machine in SITE.masters[:count]]
        self.has(CONFIG_MAPS, "etcd-endpoints", data={f"{index:x}": ip for index, ip in enumerate(addresses)})

    def has_complete(self) -> None:
        self.has(CONFIG_MAPS, "bootstrap", data={"status": "complete"})

    def has_etcd(self, *nodes: Object, **conditions: str) -> None:
        self.has(ETCDS, "cluster", conditions, status={"nodeStatuses": list(nodes)})

    def has_node(self, name: str, ready: str) -> None:
        self.has(NODES, name, {"Ready": ready})

    def has_operator(self, name: str, **conditions: str) -> None:
        self.has(CLUSTER_OPERATORS, name, conditions)


class Waiting:
    """Somebody who waits for a cluster, and what they are told. Time goes by only in pauses; something may happen in
    each."""

    def __init__(self, meanwhile: Callable[[float], None] = lambda _: None) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._meanwhile = meanwhile

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self._meanwhile(self.now)

    def was_told(self, *patterns: str) -> None:
        assert len(self.lines) == len(patterns)
        for line, pattern in zip(self.lines, patterns, strict=True):
            assert re.fullmatch(pattern, line), line
