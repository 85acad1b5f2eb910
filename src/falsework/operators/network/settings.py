"""What the cluster's network is to be: read from its two objects, with every mistake said in words."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from falsework.errors import FalseworkError
from falsework.kube.client import Object

TYPE = "Flannel"
VXLAN = "vxlan"
HOST_GATEWAY = "host-gw"
OVERHEAD = {VXLAN: 50, HOST_GATEWAY: 0}
"""Backend → bytes it adds to every packet."""
VXLAN_PORT = 4789

_LEAST_MTU = 576
_WHERE = "networks.operator.openshift.io/cluster"


@dataclass(frozen=True)
class Settings:
    cluster_networks: tuple[str, ...]
    service_networks: tuple[str, ...]
    backend: str
    mtu: int
    """What pods may put in one packet."""
    vxlan_port: int

    @property
    def link_mtu(self) -> int:
        """What the machines' own links must be able to carry."""
        return self.mtu + OVERHEAD[self.backend]


def settings_of(config: Object, operator: Object, measured: Callable[[], int]) -> Settings:
    """From networks.config and networks.operator. `measured` gives a link's MTU; asked only if nobody decided yet."""
    spec = config.get("spec") or {}
    wanted = ((operator.get("spec") or {}).get("defaultNetwork")) or {}
    kind = str(wanted.get("type") or TYPE)
    if kind != TYPE:
        raise FalseworkError(
            f"there is no network of the type {kind}",
            cause=f"{_WHERE} asks for it in spec.defaultNetwork.type",
            fix=f"remove it there, or say {TYPE}",
        )
    flannel = wanted.get("flannelConfig") or {}
    backend = str(flannel.get("backend") or VXLAN)
    if backend not in OVERHEAD:
        raise FalseworkError(
            f"{backend} is no backend of flannel that Falsework knows",
            cause=f"{_WHERE} asks for it in spec.defaultNetwork.flannelConfig.backend",
            fix=f"one of {', '.join(OVERHEAD)}",
        )
    # Once decided it stays: links of running pods do not follow.
    known = flannel.get("mtu") or (config.get("status") or {}).get("clusterNetworkMTU")
    mtu = int(known) if known else measured() - OVERHEAD[backend]
    if mtu < _LEAST_MTU:
        raise FalseworkError(f"an MTU of {mtu} is too small for pods", cause=f"below {_LEAST_MTU} IP does not work")
    return Settings(
        _one_per_family([str(entry["cidr"]) for entry in spec.get("clusterNetwork") or []]),
        tuple(map(str, spec.get("serviceNetwork") or [])),
        backend,
        mtu,
        int(flannel.get("vxlanPort") or VXLAN_PORT),
    )


def _one_per_family(cidrs: list[str]) -> tuple[str, ...]:
    families = [ipaddress.ip_network(cidr).version for cidr in cidrs]
    if not families or len(set(families)) != len(families):
        raise FalseworkError(
            f"{', '.join(cidrs) or 'no network at all'} cannot be the pods' network",
            cause="flannel has one network for each kind of address",
            fix="give networks.config.openshift.io/cluster one spec.clusterNetwork, or one of IPv4 and one of IPv6",
        )
    return tuple(cidrs)
