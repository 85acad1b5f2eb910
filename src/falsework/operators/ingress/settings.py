"""What routers are to be: read from the IngressController and the cluster's, with every mistake said in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from falsework.errors import FalseworkError
from falsework.kube.client import Object

HOST_NETWORK = "HostNetwork"
OWN_CERTIFICATE = "router-certs-default"
"""The Secret with the certificate the operator makes."""
TLS = "kubernetes.io/tls"
TLS_SECRETS = f"type={TLS}"
"""Those that may hold a certificate with its key, as the API selects them."""
WORKER = "node-role.kubernetes.io/worker"
_REPLICAS = 2


@dataclass(frozen=True)
class Settings:
    domain: str
    replicas: int
    certificate: str
    """The Secret of the certificate for the domain."""
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...] = field(default=())


def settings_of(controller: Object, config: Object | None, workers: int) -> Settings:
    """`workers` is how many nodes routers may be on, if nobody says how many routers there are to be."""
    spec = controller.get("spec") or {}
    strategy = (spec.get("endpointPublishingStrategy") or {}).get("type", HOST_NETWORK)
    if strategy != HOST_NETWORK:
        raise FalseworkError(
            f"routers cannot be published by {strategy}",
            cause="there is nothing around this cluster that would bring traffic to them but the load balancer",
            fix=f"say {HOST_NETWORK} in spec.endpointPublishingStrategy.type, or nothing",
        )
    placement = spec.get("nodePlacement") or {}
    return Settings(
        domain_of(controller, config),
        int(spec.get("replicas", min(_REPLICAS, max(workers, 1)))),
        certificate_of(controller),
        {"kubernetes.io/os": "linux", **_selected(placement.get("nodeSelector") or {})},
        tuple(placement.get("tolerations") or ()),
    )


def certificate_of(controller: Object) -> str:
    """The Secret routers are to show."""
    return str(((controller.get("spec") or {}).get("defaultCertificate") or {}).get("name") or OWN_CERTIFICATE)


def domain_of(controller: Object, config: Object | None) -> str:
    domain = (controller.get("spec") or {}).get("domain") or ((config or {}).get("spec") or {}).get("domain")
    if not domain:
        raise FalseworkError(
            "nobody says under which domain applications are",
            fix="set spec.domain of ingresses.config.openshift.io/cluster",
        )
    return str(domain)


def _selected(selector: Object) -> dict[str, str]:
    if selector.get("matchExpressions"):
        raise FalseworkError(
            "spec.nodePlacement.nodeSelector has matchExpressions", fix="name the nodes' labels in matchLabels"
        )
    return dict(selector.get("matchLabels") or {WORKER: ""})
