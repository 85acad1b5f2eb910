"""DHCP on the wire (RFC 2131, 2132): what a network card's boot ROM sends, and what it believes of what comes back.

Nothing in a packet is trusted, its lengths least of all. What is not a whole answer to our own question is None.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from socket import inet_ntoa

SERVER_PORT, CLIENT_PORT = 67, 68
DISCOVER, OFFER, REQUEST, ACK, NAK, RELEASE = 1, 2, 3, 5, 6, 7

_COOKIE = b"\x63\x82\x53\x63"
_HEADER = struct.Struct("!BBBB4sHH4s4s4s4s16s64s128s4s")
_TO_CLIENT = 2
_ETHERNET = 1
_BROADCAST_FLAG = 0x8000

_MASK, _ROUTER, _NAME_SERVERS, _HOSTNAME, _DOMAIN = 1, 3, 6, 12, 15
_WANTED_ADDRESS, _SECONDS, _OVERLOAD, _KIND, _SERVER = 50, 51, 52, 53, 54
_WANTED_OPTIONS, _MAXIMUM_SIZE, _VENDOR_CLASS, _BOOT_SERVER, _BOOT_FILE = 55, 57, 60, 66, 67
_ARCHITECTURE, _NETWORK_INTERFACE, _SEARCH = 93, 94, 119

_FIRMWARE = {
    _VENDOR_CLASS: b"PXEClient:Arch:00000:UNDI:002001",
    # A BIOS, which boots by pxelinux.
    _ARCHITECTURE: b"\0\0",
    _NETWORK_INTERFACE: b"\1\2\1",
    _MAXIMUM_SIZE: struct.pack("!H", 1472),
    _WANTED_OPTIONS: bytes(
        [_MASK, _ROUTER, _NAME_SERVERS, _HOSTNAME, _DOMAIN, _SECONDS, _SERVER, _BOOT_SERVER, _BOOT_FILE, _SEARCH]
    ),
}

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_ADDRESS = re.compile(r"((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!$)|$)){4}")
_PATH = re.compile(r"[!-~]{1,255}")


@dataclass(frozen=True)
class Lease:
    """What a DHCP server told this machine about itself."""

    address: str
    prefix_length: int
    router: str | None
    name_servers: tuple[str, ...]
    search: tuple[str, ...]
    hostname: str
    server: str
    next_server: str
    """Where the boot file is."""
    boot_file: str
    seconds: int


@dataclass(frozen=True)
class Reply:
    kind: int
    lease: Lease | None
    """None when the server refuses, or says too little to live on."""
    server: bytes


def discover(transaction: bytes, mac: bytes, seconds: int) -> bytes:
    return _message(transaction, mac, seconds, {_KIND: bytes([DISCOVER])})


def request(transaction: bytes, mac: bytes, seconds: int, address: bytes, server: bytes) -> bytes:
    return _message(transaction, mac, seconds, {_KIND: bytes([REQUEST]), _WANTED_ADDRESS: address, _SERVER: server})


def release(transaction: bytes, mac: bytes, address: bytes, server: bytes) -> bytes:
    """The address is given back: the server may give it to another one."""
    return _message(transaction, mac, 0, {_KIND: bytes([RELEASE]), _SERVER: server}, address)


def broadcast(payload: bytes) -> bytes:
    """The payload as an IP packet from nobody to everybody: there is no address yet to send it from."""
    udp_length = 8 + len(payload)
    everybody = b"\xff" * 4
    pseudo = bytes(4) + everybody + struct.pack("!BBH", 0, 17, udp_length)
    udp = struct.pack("!HHHH", CLIENT_PORT, SERVER_PORT, udp_length, 0) + payload
    udp = udp[:6] + struct.pack("!H", _checksum(pseudo + udp) or 0xFFFF) + udp[8:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + udp_length, 0, 0, 64, 17, 0, bytes(4), everybody)
    return head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + udp


def payload_of(packet: bytes) -> bytes | None:
    """What an IP packet from a DHCP server carries.

    Checksums are not looked at: between network namespaces they are left for hardware that is not there.
    """
    if len(packet) < 28 or packet[0] >> 4 != 4:
        return None
    header, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
    is_fragment = int.from_bytes(packet[6:8], "big") & 0x3FFF
    if header < 20 or total > len(packet) or total < header + 8 or is_fragment or packet[9] != 17:
        return None
    source, target, length = struct.unpack_from("!HHH", packet, header)
    if (source, target) != (SERVER_PORT, CLIENT_PORT) or not 8 <= length <= total - header:
        return None
    return packet[header + 8 : header + length]


def reply_to(transaction: bytes, mac: bytes, payload: bytes) -> Reply | None:
    """The server's message, if it is one and meant for us."""
    if len(payload) < _HEADER.size:
        return None
    op, hardware, mac_length, _, xid, _, _, _, yours, next_server, _, to, server_name, file, cookie = _HEADER.unpack(
        payload[: _HEADER.size]
    )
    if (op, hardware, mac_length, xid, to[:6], cookie) != (_TO_CLIENT, _ETHERNET, 6, transaction, mac, _COOKIE):
        return None
    options = _options(payload[_HEADER.size :])
    if options is None:
        return None
    # The fields for names may be full of further options (RFC 2132, 9.3).
    overload = options.get(_OVERLOAD, b"\0")[:1]
    for bit, field in ((1, file), (2, server_name)):
        if overload and overload[0] & bit:
            more = _options(field)
            if more is None:
                return None
            options = {**more, **options}
    kind, server = options.get(_KIND, b""), options.get(_SERVER, b"")
    if len(kind) != 1 or len(server) != 4:
        return None
    plain_file = b"" if overload and overload[0] & 1 else file
    lease = None if kind[0] == NAK else _lease(options, yours, next_server, plain_file)
    return Reply(kind[0], lease, server)


def _message(transaction: bytes, mac: bytes, seconds: int, options: Mapping[int, bytes], address: bytes = b"") -> bytes:
    # Answered to everybody: then no server has to know how to reach a machine that has no address.
    fields = (1, _ETHERNET, 6, 0, transaction, min(seconds, 0xFFFF), _BROADCAST_FLAG)
    head = _HEADER.pack(*fields, address, b"", b"", b"", mac, b"", b"", _COOKIE)
    body = b"".join(bytes([code, len(value)]) + value for code, value in {**options, **_FIRMWARE}.items())
    # Some servers and relays drop what is shorter than a BOOTP message.
    return (head + body + b"\xff").ljust(300, b"\0")


def _options(data: bytes) -> dict[int, bytes] | None:
    """Option → value; None when a length points past the end. A value in pieces is put together (RFC 3396)."""
    found: dict[int, bytes] = {}
    place = 0
    while place < len(data) and data[place] != 255:
        if data[place] == 0:
            place += 1
            continue
        if place + 2 > len(data) or place + 2 + data[place + 1] > len(data):
            return None
        code, length = data[place], data[place + 1]
        found[code] = found.get(code, b"") + data[place + 2 : place + 2 + length]
        place += 2 + length
    return found


def _lease(options: Mapping[int, bytes], yours: bytes, next_server: bytes, file: bytes) -> Lease | None:
    prefix_length = _prefix_length(options.get(_MASK, b""))
    seconds = options.get(_SECONDS, b"")
    if prefix_length is None or len(seconds) != 4 or not _is_host(yours):
        return None
    server = inet_ntoa(options[_SERVER])
    boot_server = _text(options.get(_BOOT_SERVER, b""), _ADDRESS)
    routers = _addresses(options.get(_ROUTER, b""))
    search = tuple(_search(options.get(_SEARCH, b""))) or tuple(filter(None, [_text(options.get(_DOMAIN, b""), _NAME)]))
    return Lease(
        address=inet_ntoa(yours),
        prefix_length=prefix_length,
        router=routers[0] if routers else None,
        name_servers=_addresses(options.get(_NAME_SERVERS, b"")),
        search=search,
        hostname=_text(options.get(_HOSTNAME, b""), _NAME),
        server=server,
        next_server=inet_ntoa(next_server) if _is_host(next_server) else boot_server or server,
        boot_file=_text(file, _PATH) or _text(options.get(_BOOT_FILE, b""), _PATH),
        seconds=int.from_bytes(seconds, "big"),
    )


def _is_host(address: bytes) -> bool:
    """Not nobody, this host, a group or everybody."""
    return address[0] not in (0, 127) and address[0] < 224


def _prefix_length(mask: bytes) -> int | None:
    if len(mask) != 4:
        return None
    bits = f"{int.from_bytes(mask, 'big'):032b}"
    length = bits.count("1")
    return length if length and bits == "1" * length + "0" * (32 - length) else None


def _addresses(value: bytes) -> tuple[str, ...]:
    each = (value[place : place + 4] for place in range(0, len(value) - 3, 4))
    return tuple(inet_ntoa(address) for address in each if _is_host(address))


def _text(value: bytes, form: re.Pattern[str]) -> str:
    """Text up to the first zero byte, or nothing: it ends up on a console and in files of the machine."""
    text = value.split(b"\0")[0].decode("ascii", errors="replace")
    return text if form.fullmatch(text) else ""


def _search(data: bytes) -> Iterator[str]:
    """Domains in DNS's own form (RFC 3397), as far as they make sense."""
    place = 0
    while place < len(data):
        labels: list[bytes] = []
        here, end = place, 0
        # A domain has at most 127 labels; a pointer only goes back, so that there can be no circle.
        while here < len(data) and data[here] and len(labels) < 128:
            length = data[here]
            if length >= 0xC0:
                if here + 2 > len(data):
                    return
                target = (length & 0x3F) << 8 | data[here + 1]
                if target >= here:
                    return
                end, here = end or here + 2, target
            else:
                labels.append(data[here + 1 : here + 1 + length])
                here += 1 + length
        if here >= len(data) or data[here]:
            return
        if name := _text(b".".join(labels), _NAME):
            yield name
        place = end or here + 1


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
