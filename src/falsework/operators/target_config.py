"""The ConfigMaps an operator makes for its operand: created, and put right when somebody changes them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from falsework.control_plane.pods import Pod
from falsework.kube.client import Object, WatchEvent
from falsework.kube.resources import CONFIG_MAPS
from falsework.manifests.objects import config_map
from falsework.operators.runtime.controller import Wake
from falsework.operators.runtime.program import Program

POD_KEY = "pod.yaml"


class TargetConfig:
    """`names` are the ConfigMaps that are kept; `reads` are others they are made from."""

    def __init__(self, program: Program, namespace: str, *names: str, reads: tuple[str, ...] = ()) -> None:
        self._client = program.client
        self._events = program.events
        self._namespace = namespace
        self._names = names
        self._of_interest = {*names, *reads}
        self._live = program.follow(CONFIG_MAPS, namespace)

    @property
    def wakes(self) -> tuple[Wake, ...]:
        return ((self._live, self._key),)

    def live(self, name: str) -> Object | None:
        return self._live.get(name, self._namespace)

    def keep(self, name: str, data: Mapping[str, str]) -> None:
        assert name in self._names, name
        found = self.live(name)
        if found is None:
            self._client.create(CONFIG_MAPS, config_map(name, self._namespace, data))
            self._events.normal("ConfigMapCreated", f"Created ConfigMap/{name} -n {self._namespace}")
        elif (found.get("data") or {}) != data:
            surplus = {key: None for key in found.get("data") or {} if key not in data}
            self._client.patch(CONFIG_MAPS, name, {"data": {**surplus, **data}}, self._namespace)
            self._events.normal("ConfigMapUpdated", f"Updated ConfigMap/{name} -n {self._namespace}")

    def _key(self, event: WatchEvent) -> str | None:
        return "" if event.object["metadata"]["name"] in self._of_interest else None


def pod_data(pod: Pod) -> dict[str, str]:
    """The content of an operand's ConfigMap <name>-pod; the same text for the same pod."""
    return {POD_KEY: json.dumps(pod, sort_keys=True, separators=(",", ":"))}
