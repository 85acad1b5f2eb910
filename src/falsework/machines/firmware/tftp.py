"""A TFTP client (RFC 1350, with the options of RFC 2347 to 2349): one file from one server into memory."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from falsework.errors import FalseworkError

_PORT = 69
_READ, _DATA, _ACK, _ERROR, _OPTIONS = 1, 3, 4, 5, 6
_NOT_FOUND, _UNKNOWN_TRANSFER = 1, 5
_PLAIN_BLOCK = 512
_BLOCK = 1432
"""With all headers, this fits an Ethernet frame through one tunnel."""
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 4.0


class TftpError(FalseworkError):
    """The server refused, or sent what makes no sense."""


class FileNotServedError(TftpError):
    """The server says that it has no such file."""


class Transfer:
    """One file on its way: what to answer to what came. No socket, no clock."""

    def __init__(self, file: str, limit: int) -> None:
        self.file = file
        self.content = bytearray()
        self.finished = False
        self.last_sent = struct.pack("!H", _READ) + b"\0".join(
            [file.encode(), b"octet", b"blksize", str(_BLOCK).encode(), b"tsize", b"0", b""]
        )
        self._limit = limit
        self._block_size = _PLAIN_BLOCK
        self._last_block = 0

    def received(self, packet: bytes) -> bytes | None:
        """The answer to send, if any. Raises TftpError when there is no going on."""
        if len(packet) < 4:
            return None
        kind, number = struct.unpack_from("!HH", packet)
        if kind == _ERROR:
            raise self._refused(number, packet[4:])
        if kind == _OPTIONS:
            return self._options(packet[2:])
        if kind == _DATA:
            return self._data(number, packet[4:])
        return None

    def _options(self, fields: bytes) -> bytes | None:
        if self._last_block or self.content:
            return None
        words = [word.decode("ascii", errors="replace").lower() for word in fields.split(b"\0")]
        options = dict(zip(words[::2], words[1::2], strict=False))
        size, block = options.get("tsize", "0"), options.get("blksize", str(_PLAIN_BLOCK))
        # A server may offer smaller blocks than asked for, never larger ones.
        if not (_is_number(size) and _is_number(block) and 8 <= int(block) <= _BLOCK):
            raise TftpError(f"TFTP: the server answered {self.file} with options that make no sense")
        self._check_size(int(size))
        self._block_size = int(block)
        return self._acknowledge(0)

    def _data(self, number: int, data: bytes) -> bytes | None:
        if len(data) > self._block_size:
            raise TftpError(f"TFTP: the server sent more of {self.file} at once than was agreed")
        if number == (self._last_block + 1) & 0xFFFF:
            self._check_size(len(self.content) + len(data))
            self.content += data
            self._last_block = number
            self.finished = len(data) < self._block_size
            return self._acknowledge(number)
        # Sent again, because our answer was lost. Anything else is out of its turn and will come again.
        return self._acknowledge(number) if self.content and number == self._last_block else None

    def _acknowledge(self, number: int) -> bytes:
        self.last_sent = struct.pack("!HH", _ACK, number)
        return self.last_sent

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise TftpError(f"TFTP: {self.file} has more than {self._limit} bytes")

    def _refused(self, code: int, text: bytes) -> TftpError:
        said = "".join(sign for sign in text.split(b"\0")[0].decode(errors="replace") if sign.isprintable())[:200]
        kind = FileNotServedError if code == _NOT_FOUND else TftpError
        return kind(f"TFTP: the server refused {self.file}", cause=f"it says: {said or f'error {code}'}")


def fetch(server: str, file: str, limit: int, waiting: Callable[[int], None]) -> bytes:
    """The file's content. What is not answered is asked again; `waiting` is told how often that was so far."""
    transfer = Transfer(file, limit)
    try:
        _complete(transfer, server, waiting)
    except OSError as error:
        raise TftpError(f"TFTP: {server} cannot be reached", cause=error.strerror) from None
    return bytes(transfer.content)


def _complete(transfer: Transfer, server: str, waiting: Callable[[int], None]) -> None:
    peer: tuple[str, int] | None = None
    unanswered, wait = 0, _FIRST_WAIT
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind(("0.0.0.0", 0))
        client.sendto(transfer.last_sent, (server, _PORT))
        deadline = time.monotonic() + wait
        while not transfer.finished:
            try:
                client.settimeout(max(deadline - time.monotonic(), 0.001))
                packet, sender = client.recvfrom(65536)
            except TimeoutError:
                unanswered, wait = unanswered + 1, min(2 * wait, _LONGEST_WAIT)
                waiting(unanswered)
                client.sendto(transfer.last_sent, peer or (server, _PORT))
                deadline = time.monotonic() + wait
                continue
            if sender[0] != server or sender != (peer or sender):
                # A second answer to a question that was sent twice: told off, so that its sender gives up.
                client.sendto(struct.pack("!HH", _ERROR, _UNKNOWN_TRANSFER) + b"not this one\0", sender)
                continue
            answer = transfer.received(packet)
            if answer is not None:
                # Each transfer has a port of its own at the server: the one its first answer comes from.
                peer, wait = sender, _FIRST_WAIT
                client.sendto(answer, peer)
                deadline = time.monotonic() + wait


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 10
