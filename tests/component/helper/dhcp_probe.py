"""Asks for an address once, as firmware would, and prints the offer as JSON, or null when none comes.

python dhcp_probe.py INTERFACE MAC SECONDS [OPTION=HEX …]
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from ipaddress import IPv4Address

COOKIE = b"\x63\x82\x53\x63"
ASKED_FOR = bytes([1, 3, 6, 12, 15, 43, 60, 66, 67, 119])


def discover(transaction: bytes, mac: bytes, options: dict[int, bytes]) -> bytes:
    # The broadcast flag: a client without an address has nothing else to be answered at.
    head = struct.pack("!BBBB4sHH16x16s192x", 1, 1, 6, 0, transaction, 0, 0x8000, mac.ljust(16, b"\0"))
    fields = {53: b"\x01", 55: ASKED_FOR, **options}
    body = b"".join(bytes([code, len(value)]) + value for code, value in fields.items())
    return head + COOKIE + body + b"\xff"


def parsed(packet: bytes) -> dict[str, object]:
    options: dict[int, bytes] = {}
    rest = packet[240:]
    while rest and rest[0] != 255:
        if rest[0] == 0:
            rest = rest[1:]
            continue
        length = rest[1]
        options[rest[0]] = options.get(rest[0], b"") + rest[2 : 2 + length]
        rest = rest[2 + length :]
    file = packet[108:236].split(b"\0")[0] or options.get(67, b"").rstrip(b"\0")
    return {
        "address": str(IPv4Address(packet[16:20])),
        "server": str(IPv4Address(packet[20:24])),
        "file": file.decode(),
        "name": options.get(12, b"").rstrip(b"\0").decode(),
        "domain": options.get(15, b"").rstrip(b"\0").decode(),
        "routers": options.get(3, b"").hex(),
        "dns": options.get(6, b"").hex(),
    }


def main(interface: str, mac: str, seconds: str, *options: str) -> None:
    given = {int(code): bytes.fromhex(value) for code, value in (word.split("=") for word in options)}
    transaction = os.urandom(4)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        client.bind(("0.0.0.0", 68))
        client.settimeout(float(seconds))
        client.sendto(discover(transaction, bytes.fromhex(mac.replace(":", "")), given), ("255.255.255.255", 67))
        try:
            while (packet := client.recv(4096))[4:8] != transaction:
                pass
        except TimeoutError:
            print("null")
        else:
            print(json.dumps(parsed(packet)))


if __name__ == "__main__":
    main(*sys.argv[1:])
