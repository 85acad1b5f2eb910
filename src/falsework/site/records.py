"""The names a site has in DNS. Whoever plans, serves or checks them reads this one list."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from falsework.site.model import Helper, Machine, Site

ETCD_SERVICE = "_etcd-server-ssl._tcp"
ETCD_PEER_PORT = 2380


@dataclass(frozen=True)
class Record:
    """A name in the cluster's DNS."""

    name: str
    kind: str
    value: str


def everyone(site: Site) -> tuple[Machine | Helper, ...]:
    return (site.helper, *site.machines)


def dns_records(site: Site) -> list[Record]:
    records = [
        Record(site.api_host, "A", str(site.api_vip)),
        Record(site.api_int_host, "A", str(site.api_vip)),
        Record(f"*.{site.apps_domain}", "A", str(site.ingress_vip)),
    ]
    records += [Record(site.fqdn(host), "A", str(host.address)) for host in everyone(site)]
    records += [Record(address.reverse_pointer, "PTR", f"{name}.") for address, name in reverse_names(site).items()]
    for index, machine in enumerate(site.masters):
        name = etcd_name(site, index)
        records.append(Record(name, "A", str(machine.address)))
        records.append(Record(f"{ETCD_SERVICE}.{site.domain}", "SRV", f"0 10 {ETCD_PEER_PORT} {name}."))
    return records


def etcd_name(site: Site, index: int) -> str:
    """What the SRV record of a master's etcd points to."""
    return f"etcd-{index}.{site.domain}"


def reverse_names(site: Site) -> dict[IPv4Address, str]:
    """One name for every address: a machine takes its host name from it, so there must not be a choice."""
    names = {host.address: site.fqdn(host) for host in everyone(site)}
    names.setdefault(site.api_vip, site.api_host)
    return names


def reverse_zones(site: Site) -> list[IPv4Network]:
    """The networks whose reverse zones hold the site's addresses.

    Reverse zones end at whole bytes. A network between two such ends has several, of which only those with a
    name in them are worth having; one smaller than a /24 can only be part of the /24 around it.
    """
    length = min(24, -(-site.lab.cidr.prefixlen // 8) * 8)
    return sorted({IPv4Network((address, length), strict=False) for address in reverse_names(site)})


def reverse_zone_name(zone: IPv4Network) -> str:
    labels = str(zone.network_address).split(".")[: zone.prefixlen // 8]
    return ".".join([*reversed(labels), "in-addr.arpa"])
