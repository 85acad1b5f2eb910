"""The cluster's objects as the API has them now: each kind read once, however many checks ask."""

from __future__ import annotations

import threading
from functools import cached_property

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CLUSTER_VERSIONS,
    CONFIG_MAPS,
    CSRS,
    NODES,
    PODS,
    SCHEDULERS,
    SECRETS,
    Resource,
)


class Snapshot:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._listed: dict[Resource, list[Object] | FalseworkError] = {}

    @property
    def nodes(self) -> list[Object]:
        return self.all(NODES)

    @property
    def pods(self) -> list[Object]:
        return self.all(PODS)

    @property
    def requests(self) -> list[Object]:
        return self.all(CSRS)

    @property
    def operators(self) -> list[Object]:
        return self.all(CLUSTER_OPERATORS)

    @cached_property
    def certificate_secrets(self) -> list[Object]:
        return self._client.list(SECRETS, fields="type=kubernetes.io/tls").items

    def has_operator(self, name: str) -> bool:
        return any(operator["metadata"]["name"] == name for operator in self.operators)

    def version(self) -> Object | None:
        return self.one(CLUSTER_VERSIONS, "version")

    def scheduler(self) -> Object | None:
        return self.one(SCHEDULERS, "cluster")

    def config_map(self, name: str, namespace: str) -> dict[str, str] | None:
        """What is in it; None if it is not there."""
        found = self.one(CONFIG_MAPS, name, namespace)
        return None if found is None else dict(found.get("data") or {})

    def one(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """None if it is not there, or nobody knows its kind."""
        try:
            return self._client.get(resource, name, namespace)
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    def raw(self, path: str) -> tuple[int, bytes]:
        return self._client.raw("GET", path)

    def all(self, resource: Resource) -> list[Object]:
        """An API that does not answer is not asked again by the next check."""
        with self._lock:
            if resource not in self._listed:
                self._listed[resource] = self._list(resource)
            listed = self._listed[resource]
        if isinstance(listed, FalseworkError):
            raise listed
        return listed

    def _list(self, resource: Resource) -> list[Object] | FalseworkError:
        try:
            return self._client.list(resource).items
        except FalseworkError as error:
            return error
