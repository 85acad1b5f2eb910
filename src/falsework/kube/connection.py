"""One HTTP connection to an API, with a limit on everything: on waiting, on sizes, on the length of a line."""

from __future__ import annotations

import http.client
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from falsework.kube.access import Access
from falsework.kube.errors import Unreachable

Connect = Callable[[str, int, float], socket.socket]
"""Host, port, seconds to wait → a connected socket."""

BODY_LIMIT = 256 << 20
LINE_LIMIT = 32 << 20
"""An object in etcd has at most 1.5 MiB; what a watch sends of it may be larger, but not by much."""
_PIECE = 256 << 10


@dataclass(frozen=True)
class Patience:
    """Seconds."""

    connect: float = 5.0
    answer: float = 30.0
    """Until the next piece of an answer comes."""
    whole: float = 120.0
    """Until all of it is there."""


def connect_directly(host: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((host, port), seconds)


class Connection:
    """Not for two threads at once, except for `break_off`."""

    def __init__(self, access: Access, connect: Connect, patience: Patience) -> None:
        self._access = access
        self._patience = patience
        self._http = _Http(access, connect, patience.connect)
        self._was_used = False

    def drop_if_stale(self) -> None:
        """Before something is sent that must not be sent twice: a server that has hung up meanwhile shows now."""
        sock = self._http.sock
        if sock is not None and self._was_used and select.select([sock], [], [], 0)[0]:
            self.close()

    @property
    def is_fresh(self) -> bool:
        """Whether nothing has been asked on it yet: then a fault is not that of an old connection."""
        return not self._was_used

    def ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, Iterator[bytes]]:
        """The answer's head, and its body in pieces as they come."""
        with self._explained():
            self._http.request(method, path, body, dict(headers))
            assert self._http.sock is not None
            self._http.sock.settimeout(self._patience.answer)
            response = self._http.getresponse()
        self._was_used = True
        return response, self._pieces(response)

    def whole(self, pieces: Iterator[bytes]) -> bytes:
        content, deadline = bytearray(), time.monotonic() + self._patience.whole
        for piece in pieces:
            content += piece
            if len(content) > BODY_LIMIT or time.monotonic() > deadline:
                self.close()
                raise self._trouble("its answer has no end")
        return bytes(content)

    def wait_up_to(self, seconds: float) -> None:
        """How long the next piece may take from now on."""
        if self._http.sock is not None:
            self._http.sock.settimeout(seconds)

    def close(self) -> None:
        self._was_used = False
        self._http.close()

    def break_off(self) -> None:
        """From another thread: whoever waits for a piece waits no longer."""
        sock = self._http.wire
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _pieces(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        with self._explained():
            while piece := response.read1(_PIECE):
                yield piece
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            # read1 leaves it open at the end, and http.client asks nothing more before it is closed.
            response.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            # ValueError and AttributeError: what http.client meets when the socket was closed or broken off.
            self.close()
            raise self._trouble(_in_words(error)) from None
        except BaseException:
            # Nobody knows how far the answer was read: the next one would begin with its rest.
            self.close()
            raise

    def _trouble(self, cause: str) -> Unreachable:
        return Unreachable(f"the API at {self._access.url} does not answer", cause=cause)


class _Http(http.client.HTTPConnection):
    def __init__(self, access: Access, connect: Connect, seconds: float) -> None:
        super().__init__(access.host, access.port)
        self._access = access
        self._connect = connect
        self._seconds = seconds
        self.wire: socket.socket | None = None
        """Stays when http.client lets go of it, so that it can be broken off."""

    def connect(self) -> None:
        sock = self._connect(self._access.host, self._access.port, self._seconds)
        try:
            sock.settimeout(self._seconds)
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                _notice_dead_peers(sock)
            self.sock = self.wire = self._access.context.wrap_socket(sock, server_hostname=self._access.server_name)
        except BaseException:
            sock.close()
            raise

    def close(self) -> None:
        super().close()
        if self.wire is not None:
            self.wire.close()
            self.wire = None


def _notice_dead_peers(sock: socket.socket) -> None:
    """A machine that lost its power says nothing: without this a watch would wait for it for its whole length."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, 10),
        (socket.TCP_KEEPINTVL, 5),
        (socket.TCP_KEEPCNT, 3),
        (socket.TCP_USER_TIMEOUT, 25_000),
    ):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _in_words(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not to be trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS: {error.reason or error}"
        case TimeoutError():
            return "it said nothing for too long"
        case ConnectionRefusedError():
            return "connection refused"
        case http.client.RemoteDisconnected() | ConnectionResetError() | BrokenPipeError():
            return "it closed the connection"
        case http.client.IncompleteRead():
            return "it closed the connection in the middle of an answer"
        case socket.gaierror():
            return f"its name cannot be resolved: {error.strerror}"
        case OSError():
            return str(error.strerror or error)
        case http.client.HTTPException():
            return f"what it says is not HTTP ({type(error).__name__})"
        case _:
            return "the connection was closed"
