"""How clients come in: as they are, or through TLS, perhaps with a load balancer's word on who they are."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from falsework.web import proxy_header
from falsework.web.watched import stamp

_TLS_HANDSHAKE = 0x16
"""The first byte of what a TLS client says."""


class TurnedAwayError(Exception):
    """It does not come in; the reason is for the ledger."""


class Certificate:
    """A server's certificate and key, read again when they are replaced."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._seen: object = None
        self._context: ssl.SSLContext | None = None
        self.context()

    def context(self) -> ssl.SSLContext:
        try:
            seen = tuple(map(stamp, self._paths))
            if seen != self._seen or self._context is None:
                self._context, self._seen = self._load(), seen
        except (OSError, ValueError):
            # Replaced one after the other, they do not fit for a moment: what we have is good until they do.
            if self._context is None:
                raise
        return self._context

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        # Nobody comes back often enough to resume anything.
        context.num_tickets = 0
        context.load_cert_chain(*self._paths)
        return context


@dataclass(frozen=True)
class Door:
    tls: Callable[[], ssl.SSLContext]
    balancers: Callable[[], Collection[str]] = frozenset
    """Addresses whose word on whom they speak for is believed."""


class Entering:
    """A client on its way in. `step` until it is: a slow one holds up nobody."""

    def __init__(self, door: Door, accepted: socket.socket, peer: str) -> None:
        self._door = door
        self._is_balancer = peer in door.balancers()
        self._header = b""
        self._greeted = False
        self.socket: socket.socket | ssl.SSLSocket = accepted
        self.client = peer
        self.talked = False
        """Whether it has said anything."""

    def step(self) -> None:
        """BlockingIOError, SSLWantReadError, SSLWantWriteError: it is not in yet, and this is called again."""
        if not self._greeted:
            self._greet()
            self._greeted = True
        if not isinstance(self.socket, ssl.SSLSocket):
            self.socket = self._door.tls().wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        try:
            self.socket.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            reason = str(error.reason or error.strerror or error).lower().replace("_", " ")
            raise TurnedAwayError(f"TLS: {reason}") from None

    def _greet(self) -> None:
        """Take the header, if there is one, and not a byte more: the rest is TLS."""
        if not self._header:
            first = self.socket.recv(16, socket.MSG_PEEK)
            if not first:
                raise ConnectionResetError(0, "it went away")
            self.talked = True
            if first[0] == _TLS_HANDSHAKE:
                return
            if not proxy_header.begins(first):
                raise TurnedAwayError("that is not TLS")
            if not self._is_balancer:
                raise TurnedAwayError("it is no load balancer, and sent a PROXY header")
        try:
            while (count := proxy_header.missing(self._header) if self._header else 1) > 0:
                piece = self.socket.recv(count)
                if not piece:
                    raise ConnectionResetError(0, "it went away")
                self._header += piece
            self.client = proxy_header.source(self._header) or self.client
        except ValueError as error:
            raise TurnedAwayError(str(error)) from None
