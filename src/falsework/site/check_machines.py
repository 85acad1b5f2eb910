"""The rules between machines: how many there are, and that no two share a name, a MAC or an address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from falsework.site import defaults
from falsework.site.install_config import InstallConfig
from falsework.site.model import Distribution, Provider, Role
from falsework.site.problems import Place, Problems, counted
from falsework.site.reading import Read
from falsework.site.site_config import MachineEntry, SiteConfig

MAX_HOST_NAME = 63
"""Longer names do not fit the kernel's host name."""
MAX_NODE_NAME = 64 - len("system:node:")
"""A node's certificate has the common name `system:node:NAME`, and X.509 allows 64 characters there."""
RESERVED_NAMES = re.compile(r"api|api-int|apps|ns1|smtp|localhost|etcd-[0-9]+")
MANY_MASTERS = 7


@dataclass(frozen=True)
class Counts:
    masters: int
    workers: int


def counts_of(install: InstallConfig, config: SiteConfig) -> Counts | None:
    """How many masters and workers there are; None when a mistake leaves that open."""
    masters, workers = install.control_plane.replicas, install.compute.replicas
    if not config.machines.absent:
        listed = config.machines.or_else([])
        if not listed or any(not machine.role for machine in listed):
            return None
        return Counts(_count(listed, Role.MASTER), _count(listed, Role.WORKER))
    if masters.bad or workers.bad:
        return None
    default = defaults.WORKERS if install.written else defaults.WORKERS_WITHOUT_A_FILE
    return Counts(masters.or_else(defaults.MASTERS), workers.or_else(default))


def _count(machines: list[MachineEntry], role: Role) -> int:
    return sum(machine.role.value is role for machine in machines)


def check_counts(install: InstallConfig, config: SiteConfig, problems: Problems) -> None:
    counts = counts_of(install, config)
    if counts is None:
        return
    replicas = install.control_plane.replicas
    place = replicas.place or config.machines.place
    if config.machines:
        if replicas and replicas.got() != counts.masters:
            problems.error(
                replicas.where(),
                f"controlPlane.replicas is {replicas.got()}, but site.yaml lists {counted(counts.masters, 'master')}",
                f"write {counts.masters} here, or list {counted(replicas.got(), 'master')} there",
            )
            place = None
        workers = install.compute.replicas
        if workers and workers.got() not in (0, counts.workers):
            problems.error(
                workers.where(),
                f"compute replicas is {workers.got()}, but site.yaml lists {counted(counts.workers, 'worker')}",
                f"write {counts.workers} here (or 0: the workers then join by themselves), or change the list there",
            )
        _check_one_bootstrap(config, problems)
    if place is None:
        return
    if counts.masters == 0:
        problems.error(place, "machines has no master", "list an odd number of machines with role: master")
    elif counts.masters % 2 == 0:
        problems.error(
            place,
            f"there are {counts.masters} masters",
            f"use {counts.masters - 1} or {counts.masters + 1}: with an even number etcd bears no more losses, "
            "but has one machine more to lose",
        )
    elif counts.masters > MANY_MASTERS:
        problems.warn(
            place, f"there are {counts.masters} masters", "every etcd write waits for most of them: 3 or 5 do"
        )


def _check_one_bootstrap(config: SiteConfig, problems: Problems) -> None:
    bootstraps = [machine for machine in config.machines.got() if machine.role.value is Role.BOOTSTRAP]
    if not bootstraps:
        problems.error(config.machines.where(), "machines has no bootstrap", "give one machine role: bootstrap")
    for second in bootstraps[1:]:
        first = bootstraps[0].role.where().line
        what = f"this is a second bootstrap (the first is in line {first})"
        problems.error(second.role.where(), what, "keep exactly one machine with role: bootstrap")


def check_names(
    install: InstallConfig, config: SiteConfig, distribution: Distribution, counts: Counts | None, problems: Problems
) -> None:
    listed = config.machines.or_else([])
    taken: dict[str, str] = {}
    helper = config.helper.name.or_else(defaults.HELPER_NAME)
    for name, what in _all_names(config):
        text = name.got()
        if RESERVED_NAMES.fullmatch(text):
            problems.error(name.where(), f"the name {text!r} is one of the cluster's own DNS names", "use another name")
        elif text in taken:
            problems.error(
                name.where(), f"the name {text!r} is {taken[text]}'s already", "give every machine its own name"
            )
        taken.setdefault(text, what)
        if name is not config.helper.name and config.helper.name.absent and text == helper:
            problems.error(name.where(), f"the name {text!r} is the helper's (its default)", "use another name")
    if config.machines.absent and config.helper.name and counts:
        generated = {name for name, _ in defaults.machine_names(counts.masters, counts.workers)}
        if config.helper.name.got() in generated:
            what = f"the name {config.helper.name.got()!r} is that of a machine"
            problems.error(config.helper.name.where(), what, "give the helper another name")
    _check_lengths(install, config, listed, distribution, counts, problems)


def _all_names(config: SiteConfig) -> Iterator[tuple[Read[str], str]]:
    if config.helper.name:
        yield config.helper.name, "the helper"
    for machine in config.machines.or_else([]):
        if machine.name:
            yield machine.name, f"the machine in line {machine.place.line}"


def _check_lengths(
    install: InstallConfig,
    config: SiteConfig,
    listed: list[MachineEntry],
    distribution: Distribution,
    counts: Counts | None,
    problems: Problems,
) -> None:
    """Host names of the kernel, common names of certificates."""
    if install.name.bad or install.base_domain.bad:
        return
    domain = f"{install.name.or_else(defaults.CLUSTER_NAME)}.{install.base_domain.or_else(defaults.BASE_DOMAIN)}"
    blamed = install.base_domain.place or install.place
    node_limit = MAX_NODE_NAME if distribution is Distribution.KUBERNETES else MAX_HOST_NAME
    if len(domain) + 2 > node_limit:
        problems.error(
            blamed,
            f"the cluster's domain {domain} has {len(domain)} characters",
            f"a node's name in it may have {node_limit}: shorten metadata.name or baseDomain",
        )
        return
    if config.machines.absent and counts:
        longest = max((name for name, _ in defaults.machine_names(counts.masters, counts.workers)[1:]), key=len)
        _check_length(blamed, f"{longest}.{domain}", True, distribution, problems)
    for machine in listed:
        if machine.name:
            is_node = machine.role.value is not Role.BOOTSTRAP
            _check_length(machine.name.where(), f"{machine.name.got()}.{domain}", is_node, distribution, problems)
    helper = config.helper.name
    if helper:
        _check_length(helper.where(), f"{helper.got()}.{domain}", False, distribution, problems)


def _check_length(place: Place, fqdn: str, is_node: bool, distribution: Distribution, problems: Problems) -> None:
    what = f"the host name {fqdn} has {len(fqdn)} characters"
    if len(fqdn) > MAX_HOST_NAME:
        problems.error(place, what, f"use at most {MAX_HOST_NAME} with the cluster's domain")
    elif is_node and len(fqdn) > MAX_NODE_NAME:
        right = f"a node's name fits into its certificate (CN system:node:NAME) with at most {MAX_NODE_NAME}"
        if distribution is Distribution.KUBERNETES:
            problems.error(place, what, right)
        else:
            problems.warn(place, what, right)


def check_macs(config: SiteConfig, problems: Problems) -> None:
    taken: dict[str, str] = {}
    for machine, what in _all_machines(config):
        if not machine.mac:
            continue
        mac = machine.mac.got()
        if mac in taken:
            problems.error(machine.mac.where(), f"the MAC address {mac} is {taken[mac]}'s already", "each has its own")
        taken.setdefault(mac, what)


def _all_machines(config: SiteConfig) -> Iterator[tuple[MachineEntry, str]]:
    yield config.helper, "the helper"
    for machine in config.machines.or_else([]):
        yield machine, machine.name.value or f"the machine in line {machine.place.line}"


def check_addresses(config: SiteConfig, cidr: IPv4Network, problems: Problems) -> None:
    """All written addresses are hosts of the lab network, and no two the same."""
    gateway = config.network.gateway
    taken: dict[IPv4Address, str] = {}
    if gateway.absent:
        taken[defaults.gateway_of(cidr)] = "the gateway (the default)"
    helper = config.helper.address
    written: list[tuple[Read[IPv4Address], str]] = [(gateway, "the gateway"), (helper, "the helper")]
    vips = [(config.network.api_vip, "apiVIP"), (config.network.ingress_vip, "ingressVIP")]
    # Both may be the same load balancer, and that may be the helper.
    written += [(vip, what) for vip, what in vips if vip.value != helper.value]
    written += [(machine.address, what) for machine, what in _all_machines(config)][1:]
    for address, what in written:
        if not address:
            continue
        value = address.got()
        if value not in cidr:
            problems.error(address.where(), f"{value} is outside the lab network {cidr}", f"use an address of {cidr}")
        elif value in (cidr.network_address, cidr.broadcast_address):
            problems.error(
                address.where(), f"{value} is no host's address in {cidr}", f"use one from {cidr[1]} to {cidr[-2]}"
            )
        elif value in taken and not (what == "ingressVIP" and taken[value] == "apiVIP"):
            problems.error(address.where(), f"{value} is the address of {taken[value]} already", "each has its own")
        taken.setdefault(value, what)


def check_room(config: SiteConfig, counts: Counts, cidr: IPv4Network, place: Place, problems: Problems) -> None:
    vips = {vip.value for vip in (config.network.api_vip, config.network.ingress_vip) if vip}
    needed = 1 + counts.masters + counts.workers + 2 + len(vips - {config.helper.address.value})
    if needed > cidr.num_addresses - 2:
        problems.error(
            place,
            f"{cidr} has room for {cidr.num_addresses - 2} addresses and the site needs {needed}",
            "use a larger network",
        )


def check_providers(config: SiteConfig, distribution: Distribution, problems: Problems) -> None:
    """What a provider cannot do, and what it must be told."""
    listed = config.machines.or_else([])
    if distribution is Distribution.OPENSHIFT:
        # OpenShift's machines bring their own operating system, which is no container's.
        for provider in (config.provider, *(machine.provider for machine in listed)):
            if provider.value is Provider.NSPAWN:
                problems.error(
                    provider.where(),
                    "distribution openshift does not run on provider nspawn",
                    "use libvirt or manual, or distribution: kubernetes",
                )
    if config.machines.absent and config.provider.value is Provider.MANUAL:
        problems.error(
            config.provider.where(),
            "provider manual means machines that exist, and site.yaml lists none",
            "list them under machines, each with its MAC address",
        )
    for machine in listed:
        provider = machine.provider if not machine.provider.absent else config.provider
        if provider.value is Provider.MANUAL and machine.mac.absent:
            problems.error(
                machine.place,
                "a machine of provider manual has no mac",
                "write the MAC address of the card it boots from: it is how the machine is known",
            )
