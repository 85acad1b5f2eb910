"""What will be where, before anything is: machines, names, ports, certificates. Pure data from the site."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.assets import certificates
from falsework.site.model import Distribution, Helper, Machine, Role, Site


@dataclass(frozen=True)
class Record:
    """A name in the cluster's DNS."""

    name: str
    kind: str
    value: str


@dataclass(frozen=True)
class Port:
    """Where something listens."""

    port: str
    protocol: str
    purpose: str


HELPER_PORTS = (
    Port("53", "tcp, udp", "DNS"),
    Port("67", "udp", "DHCP"),
    Port("69", "udp", "TFTP: boot loader, kernel, initramfs"),
    Port("80, 443", "tcp", "load balancer: applications"),
    Port("111, 2049", "tcp", "NFS"),
    Port("5000", "tcp", "image registry"),
    Port("6443", "tcp", "load balancer: Kubernetes API"),
    Port("8080", "tcp", "HTTP: root image, Ignition configs"),
    Port("9000", "tcp", "load balancer: statistics"),
    Port("22623", "tcp", "load balancer: Machine Config Server"),
)
_CONTROL_PLANE = (
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
PORTS = {
    Role.BOOTSTRAP: (*_CONTROL_PLANE, Port("19531", "tcp", "journal over HTTPS")),
    Role.MASTER: (*_CONTROL_PLANE, *_NODE),
    Role.WORKER: (*_NODE, *_INGRESS),
}


def ports_of(site: Site, machine: Machine | Helper) -> tuple[Port, ...]:
    """Routers are on the workers, or on the masters where there are none."""
    if isinstance(machine, Helper):
        return HELPER_PORTS
    routers_here = machine.role is Role.MASTER and not site.workers
    return (*PORTS[machine.role], *_INGRESS) if routers_here else PORTS[machine.role]


def everyone(site: Site) -> tuple[Machine | Helper, ...]:
    return (site.helper, *site.machines)


def dns_records(site: Site) -> list[Record]:
    records = [
        Record(site.api_host, "A", str(site.api_vip)),
        Record(site.api_int_host, "A", str(site.api_vip)),
        Record(f"*.{site.apps_domain}", "A", str(site.ingress_vip)),
    ]
    for host in everyone(site):
        fqdn = site.fqdn(host)
        records.append(Record(fqdn, "A", str(host.address)))
        records.append(Record(host.address.reverse_pointer, "PTR", f"{fqdn}."))
    for index, machine in enumerate(site.masters):
        name = f"etcd-{index}.{site.domain}"
        records.append(Record(name, "A", str(machine.address)))
        records.append(Record(f"_etcd-server-ssl._tcp.{site.domain}", "SRV", f"0 10 2380 {name}."))
    return records


def certificates_on(site: Site, machine: Machine | Helper) -> list[str]:
    """Names of the certificates of ours that a machine boots with."""
    if isinstance(machine, Helper) or site.distribution is Distribution.OPENSHIFT:
        return []
    if machine.role is Role.BOOTSTRAP:
        return [row.name for row in certificates.rows(site) if row.on_bootstrap is not certificates.OnBootstrap.NOTHING]
    return [f"join/{machine.name}"]
