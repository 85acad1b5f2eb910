"""This host's network links, by the kernel's own word: no other program is at hand in a pod."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

from falsework.errors import FalseworkError

_GET_ADDRESS = 0x8915
_GET_MTU = 0x8921
_INET6 = Path("/proc/net/if_inet6")


def mtu_of(address: str) -> int:
    """How much one packet holds on the link that has this address."""
    for _, name in socket.if_nameindex():
        if ipaddress.ip_address(address) in _addresses(name):
            return _mtu(name)
    raise FalseworkError(f"no link of this host has the address {address}")


def address_towards(host: str, port: int) -> str:
    """Which of this host's addresses is used to reach another one. Nothing is sent."""
    try:
        family, kind, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise FalseworkError(f"{host} cannot be reached", cause=str(error.strerror or error)) from None


def _addresses(name: str) -> set[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    found: set[ipaddress.IPv4Address | ipaddress.IPv6Address] = set()
    with contextlib.suppress(OSError):  # It has none of this kind.
        found.add(ipaddress.IPv4Address(_asked(name, _GET_ADDRESS)[20:24]))
    lines = _INET6.read_text().splitlines() if _INET6.exists() else []
    found |= {ipaddress.IPv6Address(int(line[:32], 16)) for line in lines if line.split()[-1] == name}
    return found


def _mtu(name: str) -> int:
    return int(struct.unpack_from("i", _asked(name, _GET_MTU), 16)[0])


def _asked(name: str, question: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return fcntl.ioctl(any_socket, question, struct.pack("256s", name.encode()[:15]))
