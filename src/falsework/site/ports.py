"""Where something listens on which machine. Plans, firewalls and servers read this one list."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from falsework.site.model import Helper, Machine, Role, Site

API = 6443
MACHINE_CONFIG_SERVER = 22623
HTTP = 80
HTTPS = 443
BOOT_HTTP = 8080
BALANCER_STATISTICS = 9000
REGISTRY = 5000
PORT_MAPPER = 111
NFS = 2049
MOUNTD = 20048


class Clients(StrEnum):
    """Who has business with a port."""

    LAB = "lab"
    """The machines: what is served there is theirs alone, secrets included."""
    ANYONE = "anyone"
    """Users of the cluster too; or, for DHCP, machines that have no address yet to be known by."""
    SHARES = "shares"
    """Those the site's NFS shares are for."""


@dataclass(frozen=True)
class Port:
    """Where something listens."""

    port: str
    """As people write it: `80, 443` or `2379-2380`."""
    protocol: str
    purpose: str
    clients: Clients = Clients.LAB

    @property
    def ranges(self) -> tuple[str, ...]:
        return tuple(self.port.split(", "))

    @property
    def protocols(self) -> tuple[str, ...]:
        return tuple(self.protocol.split(", "))


_SSH = Port("22", "tcp", "SSH", Clients.ANYONE)
_HELPER = (
    _SSH,
    Port("53", "tcp, udp", "DNS"),
    Port("67", "udp", "DHCP", Clients.ANYONE),
    Port("69", "udp", "TFTP: boot loader, kernel, initramfs"),
)
_HELPER_INGRESS = Port(f"{HTTP}, {HTTPS}", "tcp", "load balancer: applications", Clients.ANYONE)
_HELPER_NFS = Port(f"{PORT_MAPPER}, {NFS}, {MOUNTD}", "tcp", "NFS: port mapper, files, list of exports", Clients.SHARES)
_HELPER_REGISTRY = Port(str(REGISTRY), "tcp", "image registry")
_HELPER_API = Port(str(API), "tcp", "load balancer: Kubernetes API", Clients.ANYONE)
_HELPER_BOOT = Port(str(BOOT_HTTP), "tcp", "HTTP: root image, Ignition configs")
_HELPER_STATISTICS = Port(str(BALANCER_STATISTICS), "tcp", "load balancer: statistics")
_HELPER_MCS = Port(str(MACHINE_CONFIG_SERVER), "tcp", "load balancer: Machine Config Server")
_CONTROL_PLANE = (
    _SSH,
    Port("2379-2380", "tcp", "etcd: clients, members"),
    Port("6443", "tcp", "Kubernetes API"),
    Port("10257", "tcp", "controller manager"),
    Port("10259", "tcp", "scheduler"),
    Port("22623-22624", "tcp", "Machine Config Server"),
)
_NODE = (
    Port("4789", "udp", "pod network between nodes"),
    Port("9000-9999", "tcp", "node services"),
    Port("10250", "tcp", "kubelet"),
    Port("30000-32767", "tcp, udp", "node ports"),
)
_INGRESS = (Port("80, 443, 1936", "tcp", "router"),)
_PORTS = {
    Role.BOOTSTRAP: (*_CONTROL_PLANE, Port("19531", "tcp", "journal over HTTPS")),
    Role.MASTER: (*_CONTROL_PLANE, *_NODE),
    Role.WORKER: (_SSH, *_NODE, *_INGRESS),
}


def ports_of(site: Site, machine: Machine | Helper) -> tuple[Port, ...]:
    if isinstance(machine, Helper):
        return _ports_of_helper(site)
    routers_here = machine in router_machines(site) and machine.role is Role.MASTER
    return (*_PORTS[machine.role], *_INGRESS) if routers_here else _PORTS[machine.role]


def router_machines(site: Site) -> tuple[Machine, ...]:
    """Routers are on the workers, or on the masters where there are none."""
    return site.workers or site.masters


def _ports_of_helper(site: Site) -> tuple[Port, ...]:
    """Nothing for a load balancer that is elsewhere, nor for shares that are not there."""
    balances_api = site.api_vip == site.helper.address
    balances_ingress = site.ingress_vip == site.helper.address
    ports = (
        (_HELPER_INGRESS, balances_ingress),
        (_HELPER_NFS, bool(site.nfs_shares)),
        (_HELPER_REGISTRY, True),
        (_HELPER_API, balances_api),
        (_HELPER_BOOT, True),
        (_HELPER_STATISTICS, balances_api or balances_ingress),
        (_HELPER_MCS, balances_api),
    )
    return (*_HELPER, *(port for port, is_there in ports if is_there))
