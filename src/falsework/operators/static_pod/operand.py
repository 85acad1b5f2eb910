"""What is to run on every master, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.kube.resources import Resource

OBJECT = "cluster"
"""The name of every operator's object."""
REPORT = "installer-"
"""What the name of a daemon's report begins with, a ConfigMap beside the inputs; the node's name follows."""


@dataclass(frozen=True)
class Operand:
    name: str
    """Such as kube-apiserver: its manifest is <name>-pod.yaml, its files are in <name>-pod-<revision>."""
    pod_name: str
    """In the manifest; the API has <pod_name>-<node>."""
    namespace: str
    resource: Resource
    """The operator's object, in whose status the revisions are."""
    config_maps: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Inputs, all of them required. The ConfigMap <name>-pod, whose key pod.yaml is the pod as JSON, is always one."""
    settle: float = 0.0
    """Seconds for which the other nodes must have been good before one is touched."""
    patience: float = 300.0
    """After so many seconds without any progress, a revision has failed on a node."""

    @property
    def pod_config_map(self) -> str:
        return f"{self.name}-pod"

    @property
    def all_config_maps(self) -> tuple[str, ...]:
        return tuple(sorted({self.pod_config_map, *self.config_maps}))

    def pod_on(self, node: str) -> str:
        return f"{self.pod_name}-{node}"
