"""The HTTP server machines boot from. It runs in the helper: the standard library alone, and little of that.

One thread and one loop: a client that is slow, or silent, costs a few kilobytes and nobody else's time. Every answer is
one line of JSON on stdout, which is the journal: who, what, with which result, and never the content.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from falsework.helper import expectations
from falsework.helper.boot_answers import Answer, Answers, sentence, shown
from falsework.helper.http_messages import HEAD_END, HEAD_LIMIT, RequestError, parse_head, too_long
from falsework.sd_notify import notify

INVENTORY = "/etc/falsework/boot-server.json"
PUBLIC_FOLDER = "/srv/falsework"
"""Kernel, initramfs, root image, boot scripts."""
CONFIG_FOLDER = "/var/lib/falsework/ignition"

_CONNECTIONS = 1000
_SPARE_DESCRIPTORS = 50
_PIECE = 1 << 20
"""Bytes of a file sent in one go, before others have their turn."""
_ASKING = 10.0
"""Seconds a client has for a whole request."""
_TAKING = 30.0
"""Seconds without a byte taken after which a client is given up."""
_PARTING = 2.0
"""Seconds in which a refused client may finish talking: closed at once, it would never read why."""
_STILL = 2.0
"""When the house is full, whoever has been still for this long makes room."""
_STOPPING = 5.0
"""Seconds that answers under way have when the server is told to stop."""


@dataclass(frozen=True)
class Settings:
    inventory: Path
    expected: Path
    public: Path
    configs: Path
    address: str
    port: int


@dataclass(eq=False)
class Connection:
    socket: socket.socket
    client: str
    deadline: float
    moved: float
    """When it last did something."""
    received: bytearray = field(default_factory=bytearray)
    answer: Answer | None = None
    parting: bool = False


class BootServer:
    def __init__(self, settings: Settings, listener: socket.socket, connections: int = _CONNECTIONS) -> None:
        self._answers = Answers(settings.inventory, settings.expected, settings.public, settings.configs)
        self._listener = listener
        self._most = connections
        self._connections: set[Connection] = set()
        self._selector = selectors.DefaultSelector()
        self._listening = False

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
        for key, _ in self._selector.select(timeout=1.0 if self._connections else None):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is wakeup:
                woken = True
            elif key.data in self._connections:
                self._serve(key.data)
        now = time.monotonic()
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
            accepted, (client, _) = self._listener.accept()
        except OSError:
            # It has gone again.
            return
        accepted.setblocking(False)
        connection = Connection(accepted, client, now + _ASKING, now)
        self._connections.add(connection)
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _still(self, now: float) -> Connection | None:
        stillest = min(self._connections, key=lambda one: one.moved, default=None)
        return stillest if stillest is not None and stillest.moved < now - _STILL else None

    def _serve(self, connection: Connection) -> None:
        try:
            if connection.answer is not None:
                self._send(connection, connection.answer)
            else:
                self._receive(connection)
            while connection.received and connection.answer is None and self._next_request(connection):
                pass
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._give_up(connection, f"the connection broke: {error.strerror}")

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
            answer = self._answers.answer(parse_head(bytes(head)), connection.client)
        except RequestError as error:
            asked = shown(head.partition(b"\r\n")[0].decode("latin-1"))
            answer = sentence(asked, error.status, "This is not a request for a boot file.", error.because)
        connection.answer = answer
        self._await(connection, selectors.EVENT_WRITE, _TAKING)
        self._send(connection, answer)
        return True

    def _send(self, connection: Connection, answer: Answer) -> None:
        while answer.head:
            more = socket.MSG_MORE if answer.file is not None and answer.end > answer.offset else 0
            taken = connection.socket.send(answer.head, more)
            answer.head = answer.head[taken:]
        if answer.file is not None and answer.offset < answer.end:
            length = min(_PIECE, answer.end - answer.offset)
            taken = os.sendfile(connection.socket.fileno(), answer.file, answer.offset, length)
            if taken == 0:
                self._give_up(connection, "the file became shorter while it was sent")
                return
            answer.offset += taken
            answer.sent += taken
        connection.moved = time.monotonic()
        connection.deadline = connection.moved + _TAKING
        if answer.file is None or answer.offset >= answer.end:
            self._finish(connection, answer)

    def _finish(self, connection: Connection, answer: Answer) -> None:
        self._write_down(connection, answer)
        connection.answer = None
        if answer.keep_alive:
            self._await(connection, selectors.EVENT_READ, _ASKING)
        else:
            connection.parting = True
            connection.received.clear()
            self._await(connection, selectors.EVENT_READ, _PARTING)
            connection.socket.shutdown(socket.SHUT_WR)

    def _await(self, connection: Connection, event: int, patience: float) -> None:
        self._selector.modify(connection.socket, event, connection)
        connection.moved = time.monotonic()
        connection.deadline = connection.moved + patience

    def _too_late(self, connection: Connection) -> None:
        if connection.answer is not None:
            self._give_up(connection, f"it took nothing for {_TAKING:.0f} s")
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
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _write_down(self, connection: Connection, answer: Answer) -> None:
        if answer.file is not None:
            os.close(answer.file)
            answer.file = None
        machine = self._answers.machine_at(connection.client)
        line = {
            "time": round(time.time(), 3),
            "service": "http",
            "client": connection.client,
            "machine": machine,
            "asked": answer.asked,
            "status": answer.status.value,
            "bytes": answer.sent,
        }
        if answer.because:
            line["because"] = answer.because
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def _room_for_descriptors() -> int:
    """How many connections there can be: each is a socket and perhaps a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _CONNECTIONS + _SPARE_DESCRIPTORS
    if soft < wanted:
        soft = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(_CONNECTIONS, (soft - _SPARE_DESCRIPTORS) // 2)


def _settings(words: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(prog="boot-server", description="Serves boot files and Ignition configs.")
    parser.add_argument("--inventory", type=Path, default=Path(INVENTORY))
    parser.add_argument("--expected", type=Path, default=Path(expectations.PATH))
    parser.add_argument("--public", type=Path, default=Path(PUBLIC_FOLDER))
    parser.add_argument("--configs", type=Path, default=Path(CONFIG_FOLDER))
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, required=True)
    return Settings(**vars(parser.parse_args(words)))


def main(words: Sequence[str]) -> int:
    settings = _settings(words)
    connections = _room_for_descriptors()
    wakeup, woken = socket.socketpair()
    with wakeup, woken, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((settings.address, settings.port))
        listener.listen(1024)
        notify("READY=1")
        BootServer(settings, listener, connections).serve(wakeup)
        signal.set_wakeup_fd(-1)
    return 0
