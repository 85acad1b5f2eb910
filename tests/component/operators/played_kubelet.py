"""The part of a kubelet that static pods need: what is in the manifests' folder is soon a mirror pod in the API.

Whether a pod becomes ready is the test's to say. A manifest is looked at as kubelets do, at any moment: whenever it is
there, it and all it names must be whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml
from played import Played

from falsework.kube.client import ApiError, Client, Object
from falsework.kube.resources import PODS
from falsework.operators.runtime.conditions import now
from falsework.operators.static_pod.operand import Operand


class PlayedKubelets(Played):
    """Of several nodes, by their names' folders below `roots`."""

    pause = 0.03

    def __init__(self, client: Client, operand: Operand, roots: Path, nodes: Sequence[str]) -> None:
        super().__init__()
        self.comes_up: Callable[[str, int], bool] = lambda _node, _revision: True
        self.started: list[tuple[str, int]] = []
        """Node and revision, in order."""
        self.most_down = 0
        """Of nodes on which something ran before, at the same time."""
        self._client = client
        self._operand = operand
        self._roots = roots
        self._running: dict[str, int] = dict.fromkeys(nodes, 0)
        self._ready: set[str] = set()
        self._were_ready: set[str] = set()

    def _look(self) -> None:
        for node in self._running:
            self._look_at(node)

    def _look_at(self, node: str) -> None:
        manifest = self._roots / node / "manifests" / f"{self._operand.name}-pod.yaml"
        if not manifest.exists():
            return
        pod = yaml.safe_load(manifest.read_bytes())
        revision = int(pod["metadata"]["labels"]["revision"])
        if revision != self._running[node]:
            self._check_files(node, revision)
            self.started.append((node, revision))
            self._running[node] = revision
            self._ready.discard(node)
            self.most_down = max(self.most_down, len(self._were_ready - self._ready))
            self._replace(node, pod)
        if node not in self._ready and self.comes_up(node, revision):
            self._say_ready(node)
            self._ready.add(node)
            self._were_ready.add(node)

    def _check_files(self, node: str, revision: int) -> None:
        folder = self._roots / node / "static-pod-resources" / f"{self._operand.name}-pod-{revision}"
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        wanted = {
            f"{self._operand.name}-pod.yaml",
            f"configmaps/{self._operand.pod_config_map}/pod.yaml",
            "configmaps/config/config.yaml",
            "secrets/certificates/tls.key",
        }
        assert found == wanted, f"{node} starts revision {revision} with {found}"

    def _replace(self, node: str, pod: Object) -> None:
        name = self._operand.pod_on(node)
        with contextlib.suppress(ApiError):
            # As kubelets do it: at once.
            self._client.raw("DELETE", f"{PODS.path(self._operand.namespace, name)}?gracePeriodSeconds=0")
        mirror = {"kubernetes.io/config.mirror": "played", "kubernetes.io/config.hash": "played"}
        metadata = {**pod["metadata"], "name": name, "annotations": mirror}
        self._client.create(PODS, {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}})

    def _say_ready(self, node: str) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now()}
        status = {"status": {"phase": "Running", "conditions": [ready]}}
        self._client.patch(PODS, self._operand.pod_on(node), status, self._operand.namespace, subresource="status")
