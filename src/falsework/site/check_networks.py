"""The rules between networks: OpenShift's own, and those of the host the lab runs on."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from falsework.site import defaults
from falsework.site.host_routes import HostRoutes
from falsework.site.install_config import OVN, ClusterNetworkEntry, InstallConfig
from falsework.site.model import Distribution, IPNetwork
from falsework.site.problems import Place, Problems
from falsework.site.reading import Read

DOCKER_BRIDGE = ip_network("172.17.0.0/16")
OVN_INTERNAL: dict[str, IPNetwork] = {
    "join": ip_network("100.64.0.0/16"),
    "transit": ip_network("100.88.0.0/16"),
    "masquerade": ip_network("169.254.0.0/17"),
    "join (IPv6)": ip_network("fd98::/64"),
    "transit (IPv6)": ip_network("fd97::/64"),
    "masquerade (IPv6)": ip_network("fd69::/112"),
}
MAX_HOST_PREFIX = 30


@dataclass(frozen=True)
class Used:
    """A network the site uses; without a place it is a default."""

    key: str
    network: IPNetwork
    place: Place | None


def overlap(one: IPNetwork, other: IPNetwork) -> bool:
    if isinstance(one, IPv4Network):
        return isinstance(other, IPv4Network) and one.overlaps(other)
    return isinstance(other, IPv6Network) and one.overlaps(other)


def check_networks(
    install: InstallConfig, lab: Read[IPv4Network], distribution: Distribution, nodes: int | None, problems: Problems
) -> None:
    """`lab` is the network the machines are on (absent: the default); `nodes` how many there will be, if known."""
    machine = _used(install.machine_networks, "machineNetwork") or _lab(lab)
    service = _used(install.service_networks, "serviceNetwork")
    if install.service_networks.absent:
        service = [Used("serviceNetwork", defaults.SERVICE_NETWORK, None)]
    entries = install.cluster_networks.or_else([])
    cluster = [Used("clusterNetwork", entry.cidr.got(), entry.cidr.place) for entry in entries if entry.cidr]
    if install.cluster_networks.absent:
        cluster = [Used("clusterNetwork", defaults.CLUSTER_NETWORK.cidr, None)]

    everything = [*machine, *service, *cluster]
    _check_overlaps(everything, problems)
    if install.network_type.absent or install.network_type.value == OVN:
        _check_ovn(everything, problems)
    _check_docker_bridge(everything, problems)
    _check_service_sizes(service, problems)
    if distribution is Distribution.KUBERNETES:
        _refuse_ipv6(everything, problems)
    else:
        _check_families({"machineNetwork": machine, "serviceNetwork": service, "clusterNetwork": cluster}, problems)
    _check_service_count(service, problems)
    _check_host_prefixes(entries, install.network_type.or_else(OVN), distribution, problems)
    if nodes is not None:
        _check_room_for_nodes(entries, nodes, problems)


def _used(read: Read[list[Read[IPNetwork]]], key: str) -> list[Used]:
    return [Used(key, each.got(), each.place) for each in read.or_else([]) if each]


def _lab(lab: Read[IPv4Network]) -> list[Used]:
    if lab.bad:
        return []
    return [Used("network.cidr" if lab.place else "machineNetwork", lab.or_else(defaults.LAB_CIDR), lab.place)]


def _check_overlaps(everything: list[Used], problems: Problems) -> None:
    for index, later in enumerate(everything):
        for earlier in everything[:index]:
            if not overlap(later.network, earlier.network):
                continue
            blamed, other = (later, earlier) if later.place else (earlier, later)
            if blamed.place:
                of = f"{other.key} {other.network}" + ("" if other.place else " (the default)")
                what = f"{blamed.key} {blamed.network} overlaps {of}"
                problems.error(blamed.place, what, "give each a network of its own")
            break


def _check_ovn(everything: list[Used], problems: Problems) -> None:
    for used in everything:
        for purpose, internal in OVN_INTERNAL.items():
            if used.place and overlap(used.network, internal):
                problems.error(
                    used.place,
                    f"{used.key} {used.network} overlaps {internal}, which {OVN} uses inside ({purpose})",
                    "use another network",
                )


def _check_docker_bridge(everything: list[Used], problems: Problems) -> None:
    for used in everything:
        if used.place and overlap(used.network, DOCKER_BRIDGE):
            problems.warn(
                used.place,
                f"{used.key} {used.network} overlaps {DOCKER_BRIDGE}, the usual network of Docker's bridge",
                "use another network if Docker runs on a machine or on the host",
            )


def _check_service_sizes(service: list[Used], problems: Problems) -> None:
    for used in service:
        if not used.place:
            continue
        largest, smallest = (12, 28) if used.network.version == 4 else (108, 124)
        length = used.network.prefixlen
        if length < largest:
            problems.error(
                used.place, f"serviceNetwork {used.network} is too large", f"use a prefix length of at least {largest}"
            )
        elif length > smallest:
            problems.error(
                used.place,
                f"serviceNetwork {used.network} has no room for the cluster's own services",
                f"use a prefix length of at most {smallest}",
            )
        elif used.network.version == 6 and length < 112:
            problems.warn(used.place, f"serviceNetwork {used.network} is larger than useful", "a /112 is advised")


def _refuse_ipv6(everything: list[Used], problems: Problems) -> None:
    for used in everything:
        if used.network.version == 6 and used.place:
            problems.error(
                used.place,
                f"{used.key} {used.network} is an IPv6 network",
                "distribution kubernetes runs on IPv4 only: use an IPv4 network",
            )


def _check_families(lists: dict[str, list[Used]], problems: Problems) -> None:
    """IPv6 in one list asks for it in all three, after IPv4; machines need IPv4 in any case."""
    service = {used.network.version for used in lists["serviceNetwork"]}
    dual = service == {4, 6}
    for key, networks in lists.items():
        versions = [used.network.version for used in networks]
        place = next((used.place for used in networks if used.place), None)
        if not versions or place is None:
            continue
        if 4 not in versions:
            problems.error(place, f"{key} has no IPv4 network", "put an IPv4 network first")
        elif versions[0] == 6:
            problems.error(place, f"{key} has an IPv6 network first", "put the IPv4 network first")
        elif dual and 6 not in versions:
            problems.error(place, f"{key} has no IPv6 network, but serviceNetwork has", "add one, or use IPv4 alone")
        elif service == {4} and 6 in versions:
            six = next(used for used in networks if used.network.version == 6)
            assert six.place is not None, "there is no IPv6 default"
            problems.error(
                six.place, f"{key} has an IPv6 network, but serviceNetwork has none", "add one there, or use IPv4 alone"
            )


def _check_service_count(service: list[Used], problems: Problems) -> None:
    seen: set[int] = set()
    for used in service:
        if used.network.version in seen and used.place:
            problems.error(
                used.place,
                f"{used.network} is a second IPv{used.network.version} service network",
                "keep one of each IP version",
            )
        seen.add(used.network.version)


def _check_host_prefixes(
    entries: list[ClusterNetworkEntry], network_type: str, distribution: Distribution, problems: Problems
) -> None:
    first: int | None = None
    for entry in entries:
        if not entry.cidr or entry.host_prefix.bad:
            continue
        cidr = entry.cidr.got()
        if cidr.version == 6 and distribution is Distribution.KUBERNETES:
            continue
        if entry.host_prefix.absent:
            if distribution is Distribution.KUBERNETES or network_type == OVN:
                right = (
                    "write hostPrefix: 64" if cidr.version == 6 else "write hostPrefix: 23 for 510 pods on each node"
                )
                problems.error(entry.place, f"the cluster network {cidr} has no hostPrefix", right)
            continue
        prefix, place = entry.host_prefix.got(), entry.host_prefix.where()
        if cidr.version == 6:
            if prefix != 64:
                problems.error(place, f"hostPrefix is {prefix} for the IPv6 network {cidr}", "it must be 64")
            continue
        if not cidr.prefixlen <= prefix <= MAX_HOST_PREFIX:
            problems.error(
                place,
                f"hostPrefix {prefix} does not fit the network {cidr}",
                f"use a number from {cidr.prefixlen} to {MAX_HOST_PREFIX}",
            )
        elif first is not None and prefix != first:
            problems.error(
                place, f"hostPrefix is {prefix}, but {first} in the entry before", "use the same in all of them"
            )
        else:
            first = prefix


def _check_room_for_nodes(entries: list[ClusterNetworkEntry], nodes: int, problems: Problems) -> None:
    room = 0
    for entry in entries:
        if not entry.cidr or not entry.host_prefix:
            return
        if entry.cidr.got().version == 4:
            spare = entry.host_prefix.got() - entry.cidr.got().prefixlen
            if spare < 0:
                return
            room += 1 << spare
    if entries and 0 < room < nodes:
        problems.error(
            entries[0].host_prefix.where(),
            f"clusterNetwork has room for {room} nodes and the site has {nodes}",
            "use a larger hostPrefix or a larger network",
        )


def check_host_routes(
    lab: Used,
    bridge: str,
    others: list[Used],
    *,
    shared_lan: bool,
    reaches_out: bool,
    routes: HostRoutes,
    problems: Problems,
) -> None:
    """Where the lab meets the host (`reaches_out`: virtual machines, real ones, or NAT), an overlap cuts one off.

    A lab of namespaces alone never meets it: there it is worth a word, no more. `shared_lan`: real machines
    are on a network the host is on too, and then a route to exactly this network is as it should be.
    """
    for route in routes():
        if route.interface == bridge or (shared_lan and route.network == lab.network):
            continue
        place = lab.place or Place("site.yaml")
        where = f"the host's own route to {route.network} (by {route.interface})"
        if overlap(lab.network, route.network):
            what = f"{lab.key} {lab.network} overlaps {where}"
            if reaches_out:
                problems.error(place, what, "set network.cidr in site.yaml to a network the host does not use")
            else:
                problems.warn(
                    place, what, "this lab is closed off and works; with NAT or virtual machines it would not"
                )
        for other in others if reaches_out else []:
            if overlap(other.network, route.network):
                problems.warn(
                    other.place or Place("install-config.yaml"),
                    f"{other.key} {other.network} overlaps {where}",
                    "pods cannot reach what the host reaches there: use another network if they must",
                )
