"""A master's etcd configuration: the file its container is started with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from falsework.etcd import settings


@dataclass(frozen=True)
class Certificates:
    """Where they are on the machine."""

    authority: str
    folder: str
    node: str

    def pair(self, kind: str) -> dict[str, str]:
        """`kind` is peer or serving."""
        path = PurePosixPath(self.folder) / f"etcd-{kind}-{self.node}"
        return {"cert-file": f"{path}.crt", "key-file": f"{path}.key"}


@dataclass(frozen=True)
class MemberConfig:
    name: str
    address: str
    data: str
    certificates: Certificates
    speed: str
    max_learners: int
    quota_bytes: int
    listen: str = "0.0.0.0"
    metrics: str = "127.0.0.1"

    def to_json(self, initial_cluster: str) -> bytes:
        return json.dumps(self._values(initial_cluster), indent=1).encode() + b"\n"

    def _values(self, initial_cluster: str) -> dict[str, Any]:
        timing = settings.timing_of(self.speed)
        client, peer = settings.client_url(self.address), settings.peer_url(self.address)
        trust = {"trusted-ca-file": self.certificates.authority, "client-cert-auth": True}
        return {
            "name": self.name,
            "data-dir": self.data,
            "initial-cluster": initial_cluster,
            # Never `new`: a second cluster would be the worst that can happen.
            "initial-cluster-state": "existing",
            "initial-advertise-peer-urls": peer,
            "listen-peer-urls": f"https://{self.listen}:{settings.PEER_PORT}",
            "advertise-client-urls": client,
            "listen-client-urls": f"https://{self.listen}:{settings.CLIENT_PORT}",
            "listen-metrics-urls": f"http://{self.metrics}:{settings.METRICS_PORT}",
            "client-transport-security": self.certificates.pair("serving") | trust,
            "peer-transport-security": self.certificates.pair("peer") | trust,
            "heartbeat-interval": timing.heartbeat,
            "election-timeout": timing.election,
            "max-learners": self.max_learners,
            "quota-backend-bytes": self.quota_bytes,
        }
