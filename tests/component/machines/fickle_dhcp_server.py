"""A DHCP server that talks nonsense, offers an address, refuses it or says nothing, in turns, until the file ENOUGH is
there: then it gives it.

python fickle_dhcp_server.py INTERFACE OWN_ADDRESS OFFERED_ADDRESS ENOUGH
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

DISCOVER, OFFER, REQUEST, ACK, NAK = 1, 2, 3, 5, 6


def answer(question: bytes, kind: int, server: bytes, address: bytes) -> bytes:
    head = struct.pack("!BBBB4sHH4x4s4s4x16s", 2, 1, 6, 0, question[4:8], 0, 0, address, server, question[28:44])
    file = b"pxelinux.0".ljust(128, b"\0")
    options = {53: bytes([kind]), 54: server, 51: struct.pack("!I", 60), 1: b"\xff\xff\xff\0"}
    body = b"".join(bytes([code, len(value)]) + value for code, value in options.items())
    return head + bytes(64) + file + b"\x63\x82\x53\x63" + body + b"\xff"


def kind_of(question: bytes) -> int:
    # Our client says first what kind of message it is.
    return question[242]


def main(interface: str, own: str, offered: str, enough: str) -> None:
    server, address = socket.inet_aton(own), socket.inet_aton(offered)
    requests: set[bytes] = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        wire.bind(("0.0.0.0", 67))

        def send(payload: bytes) -> None:
            wire.sendto(payload, ("255.255.255.255", 68))

        while question := wire.recv(4096):
            offer = answer(question, OFFER, server, address)
            if kind_of(question) == DISCOVER:
                for nonsense in (b"", os.urandom(300), offer[:200], offer[:-1] + b"\x06\xff", b"\1" + offer[1:]):
                    send(nonsense)
                send(answer(question[:4] + os.urandom(4) + question[8:], OFFER, server, address))
                send(offer)
            elif kind_of(question) == REQUEST:
                # Each new try has a transaction of its own.
                requests.add(question[4:8])
                if Path(enough).exists():
                    send(answer(question, ACK, server, address))
                elif len(requests) % 2:
                    send(answer(question, NAK, server, address))


if __name__ == "__main__":
    main(*sys.argv[1:])
