"""Which ports of the helper are open to whom: what both firewalls say, each in its own words."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, collapse_addresses

from falsework.site.model import Site
from falsework.site.ports import Clients, ports_of


@dataclass(frozen=True)
class Opening:
    protocol: str
    ranges: tuple[str, ...]
    """Numbers, or `first-last`."""
    sources: tuple[IPv4Network, ...]
    """Without overlaps. None at all stands for everyone."""
    purpose: str


def openings(site: Site) -> list[Opening]:
    sources = {
        Clients.ANYONE: (),
        Clients.LAB: (site.lab.cidr,),
        Clients.SHARES: tuple(collapse_addresses(share.clients for share in site.nfs_shares)),
    }
    return [
        Opening(protocol, port.ranges, sources[port.clients], port.purpose)
        for port in ports_of(site, site.helper)
        for protocol in port.protocols
    ]
