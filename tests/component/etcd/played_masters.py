"""What happens on masters when the operator wants etcd there: the pod is the operator's, the etcd is real, and the
kubelet between them is played."""

from __future__ import annotations

import contextlib
import json
import threading

from played import Played
from real_etcd import MASTERS, Discovering, RealEtcd

from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object
from falsework.kube.resources import CONFIG_MAPS, ETCDS, NODES, PODS
from falsework.operators.etcd.pod import CONTAINER, NAMESPACE
from falsework.operators.runtime.conditions import now


class PlayedMasters(Played):
    pause = 0.05

    def __init__(self, client: Client, etcd: RealEtcd) -> None:
        super().__init__()
        self.may_start = threading.Event()
        """Until it is set, etcd is not started on any of them."""
        self.may_start.set()
        self._client = client
        self._etcd = etcd
        self._pods: dict[str, Discovering] = {}
        self._started: set[str] = set()
        self._ready: set[str] = set()

    def register(self) -> None:
        for name in MASTERS:
            labels = {"node-role.kubernetes.io/master": ""}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            self._client.create(NODES, node)
            address = {"type": "InternalIP", "address": self._etcd.addresses[name]}
            self._client.patch(NODES, name, {"status": {"addresses": [address]}}, subresource="status")

    def _look(self) -> None:
        status = self._client.get(ETCDS, "cluster").get("status") or {}
        for entry in status.get("nodeStatuses") or ():
            self._look_at(entry["nodeName"], int(entry.get("targetRevision") or 0))

    def _look_at(self, node: str, revision: int) -> None:
        if node not in self._pods and revision:
            self._create(node, revision)
            self._pods[node] = self._etcd.discover(node)
            self._say(node)
        elif node in self._pods and node not in self._started and self._pods[node].is_done and self.may_start.is_set():
            self._pods[node].finish()
            self._etcd.start(node)
            self._started.add(node)
        elif node in self._started - self._ready and self._votes(node):
            self._ready.add(node)
            self._say(node, ready=True)

    def _votes(self, node: str) -> bool:
        with contextlib.suppress(FalseworkError):
            return node in self._etcd.voters()
        # While members change, there may be nobody who answers for all of them.
        return False

    def _create(self, node: str, revision: int) -> None:
        copy = self._client.get(CONFIG_MAPS, f"etcd-pod-{revision}", NAMESPACE)
        pod: Object = json.loads(copy["data"]["pod.yaml"].replace("REVISION", str(revision)))
        mirror = {"kubernetes.io/config.mirror": "played", "kubernetes.io/config.hash": "played"}
        labels = {**pod["metadata"]["labels"], "revision": str(revision)}
        metadata = {"name": f"etcd-{node}", "namespace": NAMESPACE, "labels": labels, "annotations": mirror}
        self._client.create(PODS, {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}})

    def _say(self, node: str, *, ready: bool = False) -> None:
        state = {"running": {"startedAt": now()}}
        etcd = {"name": CONTAINER, "state": state, "image": "", "imageID": "", "ready": ready, "restartCount": 0}
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": now()}
        status = {"phase": "Running", "conditions": [condition], "containerStatuses": [etcd]}
        self._client.patch(PODS, f"etcd-{node}", {"status": status}, NAMESPACE, subresource="status")
