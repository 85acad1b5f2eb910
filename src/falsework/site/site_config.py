"""site.yaml: what OpenShift's file has no room for: machines, their network, the helper, time-outs.

Every key is optional. As in `install_config`, values are checked one by one here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from ipaddress import IPv4Address, IPv4Network

from falsework.site import forms
from falsework.site.forms import formed
from falsework.site.model import Distribution, IPAddress, KeyAlgorithm, Provider, Role, Timeouts
from falsework.site.problems import Place, Problems
from falsework.site.reading import Fields, Read, fields_of, one_of
from falsework.site.yaml_source import Node

FILE = "site.yaml"
API_VERSION = "falsework/v1"
KEYS = (
    "apiVersion",
    "distribution",
    "provider",
    "keyAlgorithm",
    "network",
    "helper",
    "sizes",
    "machines",
    "upstreamDNS",
    "nfsShares",
    "timeouts",
)
TIMEOUT_NAMES = tuple(entry.name for entry in fields(Timeouts))


@dataclass
class SizeEntry:
    cpus: Read[int] = field(default_factory=Read)
    memory_mib: Read[int] = field(default_factory=Read)
    disk_gib: Read[int] = field(default_factory=Read)


@dataclass
class MachineEntry:
    place: Place
    name: Read[str] = field(default_factory=Read)
    role: Read[Role] = field(default_factory=Read)
    mac: Read[str] = field(default_factory=Read)
    address: Read[IPv4Address] = field(default_factory=Read)
    provider: Read[Provider] = field(default_factory=Read)
    size: SizeEntry = field(default_factory=SizeEntry)


@dataclass
class NetworkEntry:
    name: Read[str] = field(default_factory=Read)
    cidr: Read[IPv4Network] = field(default_factory=Read)
    gateway: Read[IPv4Address] = field(default_factory=Read)
    nat: Read[bool] = field(default_factory=Read)
    api_vip: Read[IPv4Address] = field(default_factory=Read)
    ingress_vip: Read[IPv4Address] = field(default_factory=Read)


@dataclass
class ShareEntry:
    path: Read[str]
    clients: Read[IPv4Network]
    read_only: Read[bool]
    root_squash: Read[bool]


@dataclass
class SiteConfig:
    distribution: Read[Distribution] = field(default_factory=Read)
    provider: Read[Provider] = field(default_factory=Read)
    key_algorithm: Read[KeyAlgorithm] = field(default_factory=Read)
    network: NetworkEntry = field(default_factory=NetworkEntry)
    helper: MachineEntry = field(default_factory=lambda: MachineEntry(Place(FILE)))
    sizes: dict[Role, SizeEntry] = field(default_factory=dict)
    machines: Read[list[MachineEntry]] = field(default_factory=Read)
    upstream_dns: Read[list[Read[IPAddress]]] = field(default_factory=Read)
    shares: list[ShareEntry] = field(default_factory=list)
    timeouts: dict[str, Read[float]] = field(default_factory=dict)


def read_site_config(node: Node, problems: Problems, elsewhere: dict[str, str]) -> SiteConfig:
    """`elsewhere` names install-config.yaml's keys, for those who put one here."""
    config = SiteConfig()
    top = fields_of(node, "", problems)
    if top is None:
        return config
    top.choice("apiVersion", (API_VERSION,))
    config.distribution = top.member("distribution", Distribution)
    config.provider = top.member("provider", Provider)
    config.key_algorithm = top.member("keyAlgorithm", KeyAlgorithm)
    config.network = _network(top)
    helper = top.fields("helper")
    if helper is not None:
        config.helper = _machine(helper)
        helper.refuse_unknown()
    _read_sizes(top, config)
    _read_machines(top, config)
    _read_services(top, config)
    top.refuse_unknown(elsewhere)
    return config


def _network(top: Fields) -> NetworkEntry:
    network = top.fields("network")
    if network is None:
        place = top.key_place("network") if top.has("network") else None
        return NetworkEntry(cidr=Read(None, place))
    entry = NetworkEntry(
        name=formed(network.text("name"), "network.name", forms.interface_name, top.problems),
        cidr=formed(network.word("cidr", "a network"), "network.cidr", forms.lab_network, top.problems),
        gateway=_address(network, "gateway"),
        nat=network.boolean("nat"),
        api_vip=_address(network, "apiVIP"),
        ingress_vip=_address(network, "ingressVIP"),
    )
    network.refuse_unknown()
    return entry


def _address(fields: Fields, key: str) -> Read[IPv4Address]:
    return formed(fields.word(key, "an IP address"), fields.shown(key), forms.ipv4_address, fields.problems)


def _machine(fields: Fields) -> MachineEntry:
    """Everything but the role, which the helper has not."""
    return MachineEntry(
        place=fields.place,
        name=formed(fields.text("name"), fields.shown("name"), forms.dns_label, fields.problems),
        mac=formed(fields.word("mac", "a MAC address"), fields.shown("mac"), forms.mac_address, fields.problems),
        address=_address(fields, "address"),
        provider=fields.member("provider", Provider),
        size=_size(fields),
    )


def _size(fields: Fields) -> SizeEntry:
    return SizeEntry(
        cpus=fields.integer("cpus", 1, 1024),
        memory_mib=fields.integer("memoryMiB", 256, 33_554_432),
        disk_gib=fields.integer("diskGiB", 1, 1_048_576),
    )


def _read_sizes(top: Fields, config: SiteConfig) -> None:
    sizes = top.fields("sizes")
    if sizes is None:
        return
    for role in Role:
        size = sizes.fields(role)
        if size is not None:
            config.sizes[role] = _size(size)
            size.refuse_unknown()
    sizes.refuse_unknown()


def _read_machines(top: Fields, config: SiteConfig) -> None:
    items = top.items("machines")
    if not items:
        config.machines = Read(None, items.place)
        return
    if not items.got():
        top.problems.error(items.where(), "machines is an empty list", "list all machines, or leave the key out")
        config.machines = Read(None, items.place)
        return
    machines: list[MachineEntry] = []
    for index, node in enumerate(items.got()):
        fields = fields_of(node, f"machines[{index}]", top.problems)
        if fields is None:
            machines.append(MachineEntry(node.place, name=Read(None, node.place), role=Read(None, node.place)))
            continue
        fields.require("name", "give it a short host name, such as master-0")
        fields.require("role", f"write role: {one_of(Role)}")
        machine = _machine(fields)
        machine.role = fields.member("role", Role)
        if machine.role.absent:
            machine.role = Read(None, fields.place)
        fields.refuse_unknown()
        machines.append(machine)
    config.machines = Read(machines, items.place)


def _read_services(top: Fields, config: SiteConfig) -> None:
    words = top.words("upstreamDNS", "an IP address")
    if words:
        found = [
            formed(word, f"upstreamDNS[{index}]", forms.address, top.problems) for index, word in enumerate(words.got())
        ]
        config.upstream_dns = Read(found, words.place)
    for index, node in enumerate(top.items("nfsShares").or_else([])):
        share = fields_of(node, f"nfsShares[{index}]", top.problems)
        if share is None:
            continue
        share.require("path", "write path: /var/nfs/NAME")
        config.shares.append(
            ShareEntry(
                path=formed(share.text("path"), share.shown("path"), forms.nfs_path, top.problems),
                clients=formed(
                    share.word("clients", "a network"), share.shown("clients"), forms.ipv4_network, top.problems
                ),
                read_only=share.boolean("readOnly"),
                root_squash=share.boolean("rootSquash"),
            )
        )
        share.refuse_unknown()
    timeouts = top.fields("timeouts")
    if timeouts is not None:
        for name in TIMEOUT_NAMES:
            config.timeouts[name] = formed(
                timeouts.word(name, "a time"), f"timeouts.{name}", forms.duration, top.problems
            )
        timeouts.refuse_unknown()
