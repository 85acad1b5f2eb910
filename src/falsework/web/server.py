"""An HTTP server for machines: files and short answers.

One thread and one loop: a client that is slow, or silent, costs a few kilobytes and nobody else's time.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import socket
import ssl
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from falsework.sd_notify import notify
from falsework.web.answers import Answer, sentence, shown
from falsework.web.door import Door, Entering, TurnedAwayError
from falsework.web.messages import HEAD_END, HEAD_LIMIT, Request, RequestError, parse_head, too_long

_CONNECTIONS = 1000
_SPARE_DESCRIPTORS = 50
_PIECE = 1 << 20
"""Bytes of a file sent in one go, before others have their turn."""
_ASKING = 10.0
"""Seconds a client has for a whole request, the way in included."""
_TAKING = 30.0
"""Seconds without a byte taken after which a client is given up."""
_PARTING = 2.0
"""Seconds in which a refused client may finish talking: closed at once, it would never read why."""
_STILL = 2.0
"""When the house is full, whoever has been still for this long makes room."""
_STOPPING = 5.0
"""Seconds that answers under way have when the server is told to stop."""
_LOOKING = 0.25
"""Seconds between two looks at deadlines."""


class Service(Protocol):
    """What is served."""

    nonsense: str
    """What somebody is told whose request is none."""

    def answer(self, request: Request, client: str) -> Answer: ...

    def done(self, client: str, answer: Answer) -> None:
        """An answer has been sent, as far as it was taken: write it down."""


@dataclass(eq=False)
class Connection:
    socket: socket.socket | ssl.SSLSocket
    client: str
    deadline: float
    moved: float
    """When it last did something."""
    entering: Entering | None = None
    received: bytearray = field(default_factory=bytearray)
    answer: Answer | None = None
    parting: bool = False


class Server:
    """Without a door everybody is in as soon as the connection is there."""

    def __init__(
        self, service: Service, listener: socket.socket, door: Door | None = None, connections: int = _CONNECTIONS
    ) -> None:
        self._service = service
        self._listener = listener
        self._door = door
        self._most = connections
        self._connections: set[Connection] = set()
        self._more: set[Connection] = set()
        """Those of whom TLS has already read more than we have."""
        self._selector = selectors.DefaultSelector()
        self._listening = False
        self._looked = 0.0

    def serve(self, wakeup: socket.socket) -> None:
        """Until something comes on `wakeup`; then what is under way may end."""
        self._selector.register(wakeup, selectors.EVENT_READ)
        self._listen(True)
        while not self._turn(wakeup):
            self._listen(len(self._connections) < self._most or self._still(time.monotonic()) is not None)
        self._listen(False)
        self._listener.close()
        self._selector.unregister(wakeup)
        deadline = time.monotonic() + _STOPPING
        for connection in list(self._connections):
            if connection.answer is None:
                self._close(connection)
            else:
                connection.answer.keep_alive = False
        while self._connections and time.monotonic() < deadline:
            self._turn(None)
        for connection in list(self._connections):
            self._give_up(connection, "the server was told to stop")

    def _turn(self, wakeup: socket.socket | None) -> bool:
        """One round of the loop; whether we were woken up."""
        # Deadlines are looked at once a second, which is exact enough; with nobody there, there are none.
        woken = False
        more, self._more = self._more, set()
        patience = 0.0 if more else 1.0 if self._connections else None
        for key, _ in self._selector.select(timeout=patience):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is wakeup:
                woken = True
            elif key.data in self._connections:
                more.discard(key.data)
                self._serve(key.data)
        for connection in more & self._connections:
            self._serve(connection)
        now = time.monotonic()
        if now - self._looked > _LOOKING:
            self._looked = now
            for connection in [one for one in self._connections if one.deadline < now]:
                self._too_late(connection)
        return woken

    def _listen(self, wanted: bool) -> None:
        """While the house is full, those at the door wait there."""
        if wanted and not self._listening:
            self._selector.register(self._listener, selectors.EVENT_READ)
        elif not wanted and self._listening:
            self._selector.unregister(self._listener)
        self._listening = wanted

    def _accept(self) -> None:
        now = time.monotonic()
        if len(self._connections) >= self._most:
            still = self._still(now)
            if still is None:
                return
            self._give_up(still, "it was still while others waited for a place")
        try:
            accepted, (client, *_) = self._listener.accept()
        except OSError:
            # It has gone again.
            return
        accepted.setblocking(False)
        connection = Connection(accepted, client, now + _ASKING, now)
        if self._door is not None:
            connection.entering = Entering(self._door, accepted, client)
        self._connections.add(connection)
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _still(self, now: float) -> Connection | None:
        stillest = min(self._connections, key=lambda one: one.moved, default=None)
        return stillest if stillest is not None and stillest.moved < now - _STILL else None

    def _serve(self, connection: Connection) -> None:
        try:
            if connection.entering is not None:
                self._enter(connection, connection.entering)
            elif connection.answer is not None:
                self._send(connection, connection.answer)
            else:
                self._receive(connection)
            while connection.received and connection.answer is None and self._next_request(connection):
                pass
            if self._is_asking(connection) and isinstance(connection.socket, ssl.SSLSocket):
                # The selector sees only what TLS has not read yet.
                if connection.socket.pending():
                    self._more.add(connection)
        except ssl.SSLWantReadError:
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
        except ssl.SSLWantWriteError:
            self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)
        except (BlockingIOError, InterruptedError):
            pass
        except TurnedAwayError as error:
            self._turn_away(connection, str(error))
        except OSError as error:
            self._give_up(connection, f"the connection broke: {error.strerror}")

    def _is_asking(self, connection: Connection) -> bool:
        return connection in self._connections and connection.entering is None and connection.answer is None

    def _enter(self, connection: Connection, entering: Entering) -> None:
        try:
            entering.step()
        finally:
            # With TLS around it, it still is the same descriptor.
            connection.client, connection.socket = entering.client, entering.socket
        connection.entering = None
        connection.moved = time.monotonic()
        self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
        self._receive(connection)

    def _turn_away(self, connection: Connection, because: str) -> None:
        self._service.done(connection.client, Answer("to come in", HTTPStatus.BAD_REQUEST, b"", False, because))
        self._close(connection)

    def _receive(self, connection: Connection) -> None:
        piece = connection.socket.recv(HEAD_LIMIT)
        if not piece:
            self._close(connection)
            return
        if not connection.parting:
            connection.received += piece

    def _next_request(self, connection: Connection) -> bool:
        """Answer the first of what has come, if it is a whole request, or no good one; whether it was."""
        head, end, rest = connection.received.partition(HEAD_END)
        try:
            if len(head) > HEAD_LIMIT:
                raise too_long(head)
            if not end:
                return False
            connection.received = rest
            answer = self._service.answer(parse_head(bytes(head)), connection.client)
        except RequestError as error:
            asked = shown(head.partition(b"\r\n")[0].decode("latin-1"))
            answer = sentence(asked, error.status, self._service.nonsense, error.because)
        connection.answer = answer
        self._await(connection, selectors.EVENT_WRITE, _TAKING)
        self._send(connection, answer)
        return True

    def _send(self, connection: Connection, answer: Answer) -> None:
        while answer.head:
            taken = self._send_bytes(connection, answer.head, more=answer.end > answer.offset)
            answer.head = answer.head[taken:]
        if answer.offset < answer.end:
            taken = self._send_piece(connection, answer)
            if taken == 0:
                self._give_up(connection, "the file became shorter while it was sent")
                return
            answer.offset += taken
            answer.sent += taken
        connection.moved = time.monotonic()
        connection.deadline = connection.moved + _TAKING
        if answer.offset >= answer.end:
            self._finish(connection, answer)

    def _send_piece(self, connection: Connection, answer: Answer) -> int:
        length = min(_PIECE, answer.end - answer.offset)
        if answer.file is None:
            piece = memoryview(answer.body)[answer.offset : answer.offset + length]
            return self._send_bytes(connection, piece)
        assert not isinstance(connection.socket, ssl.SSLSocket), "files are served without TLS alone"
        return os.sendfile(connection.socket.fileno(), answer.file, answer.offset, length)

    def _send_bytes(self, connection: Connection, data: bytes | memoryview, *, more: bool = False) -> int:
        if isinstance(connection.socket, ssl.SSLSocket):
            return connection.socket.send(data)
        return connection.socket.send(data, socket.MSG_MORE if more else 0)

    def _finish(self, connection: Connection, answer: Answer) -> None:
        self._write_down(connection, answer)
        connection.answer = None
        if answer.keep_alive:
            self._await(connection, selectors.EVENT_READ, _ASKING)
            return
        connection.parting = True
        connection.received.clear()
        self._await(connection, selectors.EVENT_READ, _PARTING)
        if isinstance(connection.socket, ssl.SSLSocket):
            # Our goodbye is sent; theirs we do not wait for.
            with contextlib.suppress(ssl.SSLError):
                connection.socket.unwrap()
        connection.socket.shutdown(socket.SHUT_WR)

    def _await(self, connection: Connection, event: int, patience: float) -> None:
        self._selector.modify(connection.socket, event, connection)
        connection.moved = time.monotonic()
        connection.deadline = connection.moved + patience

    def _too_late(self, connection: Connection) -> None:
        if connection.answer is not None:
            self._give_up(connection, f"it took nothing for {_TAKING:.0f} s")
        elif connection.entering is not None and connection.entering.talked:
            self._turn_away(connection, f"it was not in after {_ASKING:.0f} s")
        elif connection.parting or not connection.received:
            self._close(connection)
        else:
            because = f"the request was not complete after {_ASKING:.0f} s"
            asked = shown(connection.received.partition(b"\r\n")[0].decode("latin-1"))
            answer = sentence(asked, HTTPStatus.REQUEST_TIMEOUT, "This took too long.", because)
            connection.answer = answer
            self._await(connection, selectors.EVENT_WRITE, _TAKING)

    def _give_up(self, connection: Connection, because: str) -> None:
        if connection.answer is not None:
            connection.answer.because = because
            self._write_down(connection, connection.answer)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._more.discard(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _write_down(self, connection: Connection, answer: Answer) -> None:
        if answer.file is not None:
            os.close(answer.file)
            answer.file = None
        self._service.done(connection.client, answer)


def run(service: Service, address: str, port: int, door: Door | None = None) -> None:
    """Serve until SIGTERM or SIGINT; systemd, where it asked for it, is told when connections are taken."""
    connections = _room_for_descriptors()
    wakeup, woken = socket.socketpair()
    with wakeup, woken, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((address, port))
        listener.listen(1024)
        notify("READY=1")
        Server(service, listener, door, connections).serve(wakeup)
        signal.set_wakeup_fd(-1)


def _room_for_descriptors() -> int:
    """How many connections there can be: each is a socket and perhaps a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _CONNECTIONS + _SPARE_DESCRIPTORS
    if soft < wanted:
        soft = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(_CONNECTIONS, (soft - _SPARE_DESCRIPTORS) // 2)
