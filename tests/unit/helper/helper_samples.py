"""Sites for the tests of the helper."""

from __future__ import annotations

import dataclasses
from datetime import date
from ipaddress import IPv4Address, IPv4Network, ip_address
from pathlib import Path

from falsework.site.load import default_site, load_site
from falsework.site.model import Architecture, Distribution, LabNetwork, Machine, NfsShare, Site

TODAY = date(2030, 1, 2)
ALCHEMY = Path(__file__).parents[3] / "examples" / "alchemy"


def alchemy() -> Site:
    return load_site(ALCHEMY, routes=tuple)


def changed(**fields: object) -> Site:
    return dataclasses.replace(default_site(), **fields)  # type: ignore[arg-type]


def moved(cidr: str) -> Site:
    """The default site in another network, with the machines spread over all of it."""
    site, network = default_site(), IPv4Network(cidr)
    step = (network.num_addresses - 4) // len(site.machines)

    def placed(index: int, machine: Machine) -> Machine:
        return dataclasses.replace(machine, address=network[3 + index * step])

    helper = dataclasses.replace(site.helper, address=network[2])
    return dataclasses.replace(
        site,
        lab=LabNetwork("lab", network, network[1], nat=False),
        helper=helper,
        machines=tuple(placed(index, machine) for index, machine in enumerate(site.machines)),
        api_vip=helper.address,
        ingress_vip=helper.address,
    )


def rich() -> Site:
    """Everything a site can have besides the defaults."""
    site = alchemy()
    return dataclasses.replace(
        site,
        distribution=Distribution.OPENSHIFT,
        api_vip=IPv4Address("192.168.100.5"),
        ingress_vip=IPv4Address("192.168.100.6"),
        upstream_dns=(ip_address("8.8.8.8"), ip_address("2001:db8::53")),
        nfs_shares=(
            NfsShare("/var/nfs/registry", IPv4Network("192.168.100.0/24")),
            NfsShare("/var/nfs/books", IPv4Network("192.168.0.0/16"), read_only=True, root_squash=True),
            NfsShare("/var/nfs/far", IPv4Network("10.0.0.0/8")),
        ),
    )


def without_workers() -> Site:
    site = default_site()
    return dataclasses.replace(site, machines=(site.bootstrap, *site.masters))


def arm() -> Site:
    return changed(architecture=Architecture.ARM64)


def mainframe() -> Site:
    return changed(architecture=Architecture.S390X)


def odd_names() -> Site:
    """Names that are numbers, or words of some server's language."""
    site = default_site()
    names = ("pool", "0", "1h", "in", "ignore", "7-up")
    machines = (dataclasses.replace(machine, name=name) for machine, name in zip(site.machines, names, strict=True))
    return dataclasses.replace(site, machines=tuple(machines))


def sites() -> dict[str, Site]:
    """All kinds, for whoever checks what holds for every site."""
    return {
        "default": default_site(),
        "alchemy": alchemy(),
        "rich": rich(),
        "no-workers": without_workers(),
        "arm64": arm(),
        "s390x": mainframe(),
        "odd-names": odd_names(),
        **{f"slash-{length}": moved(f"10.0.0.0/{length}") for length in (8, 12, 16, 21, 24, 27)},
    }
