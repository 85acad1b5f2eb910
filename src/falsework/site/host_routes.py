"""The host's own IPv4 routes, as the kernel shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path


@dataclass(frozen=True)
class Route:
    interface: str
    network: IPv4Network


HostRoutes = Callable[[], tuple[Route, ...]]


def read_host_routes(table: Path = Path("/proc/net/route")) -> tuple[Route, ...]:
    """All but the default route, which leads everywhere and clashes with nothing. None where there is no such table."""
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return ()
    routes = []
    for line in lines:
        words = line.split()
        if len(words) < 8 or words[0] == "lo":
            continue
        network = IPv4Network((_address(words[1]), str(_address(words[7]))), strict=False)
        if network.prefixlen:
            routes.append(Route(words[0], network))
    return tuple(routes)


def _address(word: str) -> IPv4Address:
    """The kernel prints addresses as hex numbers in the byte order of memory."""
    return IPv4Address(bytes.fromhex(word)[::-1])
