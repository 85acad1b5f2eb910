"""What a site is, once its files are read and found good. Everything else in Falsework starts from this.

A Site holds only checked values: whoever has one need not check again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


class Distribution(StrEnum):
    KUBERNETES = "kubernetes"
    OPENSHIFT = "openshift"


class Role(StrEnum):
    """What a machine becomes. The helper is no part of the cluster and has a class of its own."""

    BOOTSTRAP = "bootstrap"
    MASTER = "master"
    WORKER = "worker"


class Provider(StrEnum):
    NSPAWN = "nspawn"
    LIBVIRT = "libvirt"
    MANUAL = "manual"


class KeyAlgorithm(StrEnum):
    ECDSA = "ecdsa"
    RSA = "rsa"


class Architecture(StrEnum):
    AMD64 = "amd64"
    ARM64 = "arm64"
    PPC64LE = "ppc64le"
    S390X = "s390x"


@dataclass(frozen=True)
class Size:
    cpus: int
    memory_mib: int
    disk_gib: int


@dataclass(frozen=True)
class Machine:
    name: str
    """The short host name: one DNS label, such as `master-0`."""
    role: Role
    mac: str
    """Lower case with colons: `52:54:00:8b:a1:17`."""
    address: IPv4Address
    provider: Provider
    cpus: int
    memory_mib: int
    disk_gib: int


@dataclass(frozen=True)
class Helper:
    """The machine with DNS, DHCP, TFTP, HTTP, load balancer, registry and NFS."""

    name: str
    mac: str
    address: IPv4Address
    provider: Provider
    cpus: int
    memory_mib: int
    disk_gib: int


@dataclass(frozen=True)
class LabNetwork:
    """The network all machines are on."""

    name: str
    """Name of the bridge (and of the libvirt network): at most 15 characters, as the kernel has it."""
    cidr: IPv4Network
    gateway: IPv4Address
    nat: bool
    """Whether the machines reach the world outside through the host."""


@dataclass(frozen=True)
class ClusterNetwork:
    """A range pods get addresses from, and the length of the slice every node takes of it."""

    cidr: IPNetwork
    host_prefix: int


@dataclass(frozen=True)
class Networking:
    machine_networks: tuple[IPNetwork, ...]
    cluster_networks: tuple[ClusterNetwork, ...]
    service_networks: tuple[IPNetwork, ...]
    network_type: str

    @property
    def machine_network(self) -> IPNetwork:
        return self.machine_networks[0]

    @property
    def api_service_address(self) -> IPAddress:
        """Where the Service `kubernetes` answers: the first address of the first service network."""
        return self.service_networks[0][1]

    @property
    def dns_service_address(self) -> IPAddress:
        """Where the cluster's own DNS answers: the tenth address, as OpenShift has it."""
        return self.service_networks[0][10]


@dataclass(frozen=True)
class NfsShare:
    """A folder the helper exports."""

    path: str
    clients: IPv4Network
    read_only: bool = False
    root_squash: bool = False


@dataclass(frozen=True)
class Timeouts:
    """Seconds without any progress after which a wait gives up. No wait has a limit on its whole length."""

    boot: float = 300
    """From power on to the configuration fetched and applied."""
    api: float = 300
    """Until the bootstrap's API server answers."""
    join: float = 300
    """Until a machine is a node."""
    pivot: float = 600
    """Until the control plane runs on the masters and the bootstrap can go."""
    operators: float = 900
    """Until the cluster's operators say they are available."""


@dataclass(frozen=True)
class Site:
    cluster_name: str
    base_domain: str
    distribution: Distribution
    networking: Networking
    lab: LabNetwork
    helper: Helper
    machines: tuple[Machine, ...]
    """Bootstrap, masters, workers, in this order; within a role as written."""
    api_vip: IPv4Address
    """Where api and api-int point to: the helper, unless the site has a load balancer of its own."""
    ingress_vip: IPv4Address
    """Where *.apps points to."""
    control_plane_replicas: int
    compute_replicas: int
    """As install-config.yaml has it. 0 with workers in site.yaml is usual on user-provided machines:
    the workers then join by themselves, and the masters start out schedulable."""
    architecture: Architecture = Architecture.AMD64
    hyperthreading: tuple[bool, bool] = (True, True)
    """Of masters and of workers."""
    upstream_dns: tuple[IPAddress, ...] = ()
    """Name servers outside; with none, the helper answers for the site alone."""
    nfs_shares: tuple[NfsShare, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    key_algorithm: KeyAlgorithm = KeyAlgorithm.ECDSA
    ssh_keys: tuple[str, ...] = ()
    """Lines of authorized_keys for the user `core`."""
    pull_secret: str | None = field(default=None, repr=False)
    """The JSON text, or None where there is none (or only a placeholder)."""
    fips: bool = False
    publish: str = "External"
    additional_trust_bundle: str | None = None
    additional_trust_bundle_policy: str = "Proxyonly"
    passed_on: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    """Settings of install-config.yaml that mean nothing to Falsework itself (proxy, capabilities, …): they go
    into the cluster's copy of the install-config, and to openshift-install, as they were written."""

    @cached_property
    def domain(self) -> str:
        """The cluster's domain: `lab.falsework.test`."""
        return f"{self.cluster_name}.{self.base_domain}"

    @property
    def api_host(self) -> str:
        return f"api.{self.domain}"

    @property
    def api_int_host(self) -> str:
        return f"api-int.{self.domain}"

    @property
    def apps_domain(self) -> str:
        return f"apps.{self.domain}"

    @cached_property
    def bootstrap(self) -> Machine:
        return next(machine for machine in self.machines if machine.role is Role.BOOTSTRAP)

    @cached_property
    def masters(self) -> tuple[Machine, ...]:
        return tuple(machine for machine in self.machines if machine.role is Role.MASTER)

    @cached_property
    def workers(self) -> tuple[Machine, ...]:
        return tuple(machine for machine in self.machines if machine.role is Role.WORKER)

    def without_bootstrap(self) -> Site:
        """What is left of it after the pivot. Only for those who go through its machines: it has no `bootstrap`."""
        return replace(self, machines=(*self.masters, *self.workers))

    def machine(self, name: str) -> Machine:
        """The machine with this short name or FQDN; KeyError when there is none."""
        return self._by_name[name.removesuffix("." + self.domain)]

    def fqdn(self, machine: Machine | Helper) -> str:
        """The full host name, which for masters and workers is the node's name too."""
        return f"{machine.name}.{self.domain}"

    @cached_property
    def _by_name(self) -> dict[str, Machine]:
        return {machine.name: machine for machine in self.machines}
