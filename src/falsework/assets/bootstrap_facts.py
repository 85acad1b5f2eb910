"""What the bootstrap machine has to know of the site and the release: /opt/openshift/bootstrap.json.

The installer writes it, what runs on the machine reads it. There it has the standard library alone.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

IMAGES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "falsework",
    "flannel",
    "coredns",
    "haproxy",
    "registry",
    "pause",
)
"""What the temporary control plane runs, and what it has operators run."""
BOOT_ID = "/run/falsework/boot_id"
"""The machine's boot id, for pods: there, /proc has the kernel's, which machines that share a kernel have in common."""


@dataclass(frozen=True)
class Network:
    cidr: str
    host_prefix: int
    """The length of the prefix a node gets out of it."""


@dataclass(frozen=True)
class BootstrapFacts:
    cluster_name: str
    domain: str
    api_host: str
    api_int_host: str
    name: str
    """The bootstrap machine's short name, which it also calls itself."""
    fqdn: str
    """What its certificates are called after."""
    address: str
    service_networks: tuple[str, ...]
    cluster_networks: tuple[Network, ...]
    control_plane_replicas: int
    masters: tuple[str, ...]
    """Addresses of the machines that take over."""
    etcd_speed: str
    """One of the words of `etcd.settings.Speed`."""
    api_shutdown_delay: int
    """Seconds in which the temporary API server, told to stop, still answers everything: the load balancer must have
    noticed by then."""
    release_version: str
    release_image: str
    images: dict[str, str]
    """Name → reference, of all in `IMAGES`."""

    def to_json(self) -> bytes:
        return json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True).encode() + b"\n"

    @classmethod
    def from_json(cls, content: bytes) -> BootstrapFacts:
        """ValueError, TypeError or KeyError if that is no such file."""
        found: dict[str, Any] = json.loads(content)
        found["cluster_networks"] = tuple(Network(**entry) for entry in found["cluster_networks"])
        for key in ("service_networks", "masters"):
            found[key] = tuple(found[key])
        return cls(**found)
