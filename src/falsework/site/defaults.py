"""What holds where the files say nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from falsework.site.model import ClusterNetwork, Distribution, Provider, Role, Size

CLUSTER_NAME = "lab"
BASE_DOMAIN = "falsework.test"
LAB_CIDR = IPv4Network("192.168.126.0/24")
SERVICE_NETWORK = IPv4Network("172.30.0.0/16")
CLUSTER_NETWORK = ClusterNetwork(IPv4Network("10.128.0.0/14"), 23)
NETWORK_TYPE = "OVNKubernetes"
HELPER_NAME = "helper"

MASTERS = 3
WORKERS_WITHOUT_A_FILE = 2
WORKERS = 3
"""OpenShift's own default, where there is an install-config that does not say."""

HELPER_SIZE = Size(cpus=2, memory_mib=2048, disk_gib=40)
SIZES = {
    Distribution.KUBERNETES: {
        Role.BOOTSTRAP: Size(cpus=2, memory_mib=2048, disk_gib=20),
        Role.MASTER: Size(cpus=2, memory_mib=3072, disk_gib=20),
        Role.WORKER: Size(cpus=2, memory_mib=2048, disk_gib=20),
    },
    Distribution.OPENSHIFT: {
        Role.BOOTSTRAP: Size(cpus=4, memory_mib=16384, disk_gib=120),
        Role.MASTER: Size(cpus=4, memory_mib=16384, disk_gib=120),
        Role.WORKER: Size(cpus=2, memory_mib=8192, disk_gib=120),
    },
}

_HELPER_OFFSET = 2
_OFFSETS = {Role.BOOTSTRAP: 100, Role.MASTER: 101, Role.WORKER: 111}


def provider_of(distribution: Distribution) -> Provider:
    """OpenShift's machines bring their own operating system, so they need at least a virtual machine."""
    return Provider.LIBVIRT if distribution is Distribution.OPENSHIFT else Provider.NSPAWN


def helper_provider(machines: Provider) -> Provider:
    """Next to machines of other people the helper still is ours."""
    return Provider.NSPAWN if machines is Provider.MANUAL else machines


def nat_of(distribution: Distribution) -> bool:
    """OpenShift pulls its images from outside; the lab of the other distribution has all it needs inside."""
    return distribution is Distribution.OPENSHIFT


def bridge_name(cluster_name: str) -> str:
    return cluster_name.replace(".", "-")[:15].rstrip("-")


def gateway_of(cidr: IPv4Network) -> IPv4Address:
    return cidr[1]


def machine_names(masters: int, workers: int) -> list[tuple[str, Role]]:
    return [
        ("bootstrap", Role.BOOTSTRAP),
        *((f"master-{index}", Role.MASTER) for index in range(masters)),
        *((f"worker-{index}", Role.WORKER) for index in range(workers)),
    ]


class Addresses:
    """Gives out free addresses of the lab network: bootstrap .100, masters from .101, workers from .111, helper .2.

    In a network smaller than a /24 they stand close together from .2 on. Only good when there is room for all.
    """

    def __init__(self, cidr: IPv4Network, taken: Iterable[IPv4Address]) -> None:
        self.cidr = cidr
        self.taken = set(taken)
        self.next: dict[Role | None, int] = {}

    def give(self, role: Role | None) -> IPv4Address:
        """`None` asks for the helper."""
        start = _OFFSETS[role] if role and self.cidr.prefixlen <= 24 else _HELPER_OFFSET
        last = self.cidr.num_addresses - 2
        index = self.next.get(role, start)
        while self.cidr[index] in self.taken:
            index = index + 1 if index < last else 1
        self.next[role] = index
        self.taken.add(self.cidr[index])
        return self.cidr[index]


class Macs:
    """Gives out MAC addresses made from the machines' full names: the same name has the same one on every run."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)

    def give(self, fqdn: str) -> str:
        attempt = 0
        while True:
            digest = hashlib.sha256(f"{fqdn}#{attempt}".encode()).digest()
            mac = f"52:54:00:{digest[0]:02x}:{digest[1]:02x}:{digest[2]:02x}"
            if mac not in self.taken:
                self.taken.add(mac)
                return mac
            attempt += 1
