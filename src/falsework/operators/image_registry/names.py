"""By which names the registry is known, and what of it is called what."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.manifests.operators.image_registry import NAMESPACE

REGISTRY = "image-registry"
"""Its Deployment and its Service."""
PORT = 5000
ROUTE = "default-route"

SERVICE = f"{REGISTRY}.{NAMESPACE}.svc"
SERVICE_NAMES = (SERVICE, f"{SERVICE}.cluster.local")
INTERNAL_HOST = f"{SERVICE}:{PORT}"
"""What an image of this registry begins with."""

# Secrets
LOGIN = "image-registry-login"
"""For people: who may push and pull."""
PRIVATE = "image-registry-private-configuration"
"""For the registry: how it knows them."""
SIGNER = "image-registry-signer"
SERVING = "image-registry-tls"
NODE_REGISTRIES = "node-ca-registries"
"""For the nodes: where registries are, whom to trust, and who they are."""

# ConfigMaps
CERTIFICATES = "image-registry-certificates"
"""Whom to trust, by the registry's names. A `..` stands for the `:` that no key may have."""
CONFIG = "image-registry-config"

NODE_CA = "node-ca"
"""The DaemonSet that tells nodes of it."""


@dataclass(frozen=True)
class Place:
    """Where the registry answers."""

    addresses: tuple[str, ...]
    """Of its Service."""
    route: str
    """The host name of its route; empty without one."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """As images may be called by."""
        by_service = tuple(f"{name}:{PORT}" for name in SERVICE_NAMES)
        return (*by_service, *((self.route,) if self.route else ()))
