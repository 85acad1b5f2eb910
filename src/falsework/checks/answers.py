"""Asking servers in the lab as its machines do: from inside its network, with a bound on the time."""

from __future__ import annotations

import http.client
import socket
import ssl
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from falsework import tls
from falsework.machines.namespaces import inside

PATIENCE = 2.0
"""Seconds: a server in the same host answers in milliseconds, or not at all."""
_DNS = 53
_POINTER = 0xC0
_A, _IN = 1, 1
_RECURSION_DESIRED = 0x0100
_ID = 0x4657

Answer = TypeVar("Answer")


class Asker:
    """`netns` is the file of the network namespace to ask from. OSError says that nobody answered."""

    def __init__(self, netns: Path) -> None:
        self._netns = netns

    def address_of(self, server: str, name: str) -> str | None:
        """What a name server says is the address of a name; None if it says that there is none."""
        return self._ask(partial(_address_of, server, name))

    def connects(self, address: str, port: int) -> None:
        self._ask(partial(_connects, address, port))

    def status(self, address: str, port: int, path: str, trusted: Path | None = None, name: str = "") -> int:
        """The status a web server answers with. With a file of `trusted` authorities over TLS, to a server that can
        prove to be `name`."""
        return self._ask(partial(_status, address, port, path, trusted, name))

    def certificate(self, address: str, port: int) -> bytes:
        """What a server shows, as PEM, whoever it is: to be judged, not believed."""
        return self._ask(partial(_certificate, address, port))

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        return inside(self._netns, question)


def _address_of(server: str, name: str) -> str | None:
    question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    packet = struct.pack(">6H", _ID, _RECURSION_DESIRED, 1, 0, 0, 0) + question + struct.pack(">2H", _A, _IN)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE)
        # Connected: an answer from somebody else is none, and a closed port is told at once.
        asking.connect((server, _DNS))
        asking.send(packet)
        answer = asking.recv(4096)
    if len(answer) < len(packet) or answer[:2] != packet[:2] or not struct.unpack(">H", answer[6:8])[0]:
        return None
    # The first answer follows the question: its name, type, class, time to live, length, address.
    start = _after_name(answer, len(packet))
    kind, _, _, length = struct.unpack(">2HIH", answer[start : start + 10])
    return socket.inet_ntoa(answer[start + 10 : start + 14]) if (kind, length) == (_A, 4) else None


def _after_name(answer: bytes, start: int) -> int:
    """A name is written out, label by label, or ends with a pointer to where it was written before."""
    while 0 < answer[start] < _POINTER:
        start += 1 + answer[start]
    return start + (2 if answer[start] >= _POINTER else 1)


def _connects(address: str, port: int) -> None:
    socket.create_connection((address, port), PATIENCE).close()


def _certificate(address: str, port: int) -> bytes:
    with (
        socket.create_connection((address, port), PATIENCE) as plain,
        tls.unchecked().wrap_socket(plain) as secured,
    ):
        shown = secured.getpeercert(binary_form=True)
    return ssl.DER_cert_to_PEM_cert(shown or b"").encode()


def _status(address: str, port: int, path: str, trusted: Path | None, name: str) -> int:
    connection = http.client.HTTPConnection(address, port, timeout=PATIENCE)
    try:
        if trusted:
            connection.connect()
            connection.sock = ssl.create_default_context(cafile=trusted).wrap_socket(
                connection.sock, server_hostname=name
            )
        connection.request("GET", path, headers={"Host": name} if name else {})
        return connection.getresponse().status
    except http.client.HTTPException as error:
        raise ConnectionError(f"{address}:{port} does not speak HTTP: {error!r}") from None
    finally:
        connection.close()
