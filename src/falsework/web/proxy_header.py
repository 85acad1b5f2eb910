"""The PROXY protocol: a load balancer's word, before anything else, on whom it speaks for. Versions 1 and 2.

Whether to believe it is for the caller to decide: anybody can send such a header.
"""

from __future__ import annotations

import re
import struct
from ipaddress import AddressValueError, IPv4Address, IPv6Address

_VERSION_1 = b"PROXY "
_VERSION_2 = b"\r\n\r\n\0\r\nQUIT\n"
_LONGEST_1 = 107
_FIXED_2 = 16
_LONGEST_2 = 1024
"""Bytes after the fixed ones. Addresses need 36; a balancer may add what it knows of the connection."""
_LINE = re.compile(
    rb"PROXY (?:UNKNOWN(?: [!-~ ]*)?|TCP([46]) ([0-9a-fA-F.:]+) [0-9a-fA-F.:]+ [0-9]{1,5} [0-9]{1,5})\r\n"
)
_LOCAL, _PROXY = 0x20, 0x21
_IPV4, _IPV6 = 0x1, 0x2


def begins(first: bytes) -> bool:
    """Whether these first bytes, one at least, can be those of a header. Neither TLS nor HTTP's GET begins so."""
    return _VERSION_1.startswith(first[: len(_VERSION_1)]) or _VERSION_2.startswith(first[: len(_VERSION_2)])


def missing(received: bytes) -> int:
    """How many bytes to read next, none of them from after the header; 0 when it is whole. ValueError if it is none."""
    if not begins(received):
        raise ValueError("that is no PROXY header")
    if not received.startswith(_VERSION_1[:1]):
        if len(received) < _FIXED_2:
            return _FIXED_2 - len(received)
        (length,) = struct.unpack_from("!H", received, 14)
        if length > _LONGEST_2:
            raise ValueError("the PROXY header is too long")
        return max(0, _FIXED_2 + int(length) - len(received))
    if received.endswith(b"\r\n"):
        return 0
    if len(received) >= _LONGEST_1:
        raise ValueError("the PROXY header is too long")
    # Where it ends is known only at its end.
    return max(1, len(_VERSION_1) - len(received))


def source(header: bytes) -> str | None:
    """The client's address; None if the balancer speaks for itself, or does not know. ValueError if it is not valid."""
    return _source_1(header) if header.startswith(_VERSION_1) else _source_2(header)


def _source_1(header: bytes) -> str | None:
    found = _LINE.fullmatch(header)
    if not found:
        raise ValueError("the PROXY header is not valid")
    if found[1] is None:
        return None
    try:
        return _text(IPv4Address(found[2].decode()) if found[1] == b"4" else IPv6Address(found[2].decode()))
    except AddressValueError:
        raise ValueError("the PROXY header has an address that is none") from None


def _source_2(header: bytes) -> str | None:
    command, family = header[12], header[13] >> 4
    if command == _LOCAL:
        # A health check.
        return None
    if command != _PROXY:
        raise ValueError("the PROXY header has an unknown command")
    addresses = header[_FIXED_2:]
    if family == _IPV4 and len(addresses) >= 12:
        return str(IPv4Address(addresses[:4]))
    if family == _IPV6 and len(addresses) >= 36:
        return _text(IPv6Address(addresses[:16]))
    if family in (_IPV4, _IPV6):
        raise ValueError("the PROXY header has no room for its addresses")
    return None


def _text(address: IPv4Address | IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
