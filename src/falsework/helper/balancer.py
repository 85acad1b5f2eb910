"""The door to a running HAProxy: its runtime socket. Every call is one connection, answered at once or given up."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from falsework.errors import FalseworkError, UsageError
from falsework.haproxy import command_line

PATIENCE = 5.0
GRACE = 10.0
_CLOSED = "L4CON"
"""How the last check of a server begins whose port is closed."""
_TICK = 0.05
_SERVERS = "show stat -1 4 -1"
"""Of all backends, the servers alone."""

_DELETED = "Server deleted"
_HEAD = "# "
"""Before the names of the columns."""


class Status(StrEnum):
    UP = "UP"
    DOWN = "DOWN"
    DRAIN = "DRAIN"
    """No new connections; those there are may end by themselves."""
    MAINT = "MAINT"
    """None at all, and no checks."""


@dataclass(frozen=True)
class Server:
    """A machine's place in one backend."""

    backend: str
    name: str
    address: str
    status: Status
    backup: bool
    check: str
    """What the last check said, in HAProxy's words; empty before the first."""
    sessions: int

    @property
    def is_in_use(self) -> bool:
        """A closed port has ended its side of every connection; the other side may not have noticed."""
        return bool(self.sessions) and not self.check.startswith(_CLOSED)


class Balancer:
    def __init__(self, runtime_socket: Path, patience: float = PATIENCE) -> None:
        self._socket = runtime_socket
        self._patience = patience

    def state(self) -> list[Server]:
        answer = self._ask(_SERVERS)
        try:
            if not answer.startswith(_HEAD):
                raise ValueError(answer)
            lines = answer.removeprefix(_HEAD).splitlines()
            return [_server(row) for row in csv.DictReader(filter(None, lines), restval="")]
        except (KeyError, ValueError):
            raise self._broken("it does not answer as HAProxy does") from None

    def drain(self, machine: str) -> list[Server]:
        return self._set(machine, "drain")

    def ready(self, machine: str) -> list[Server]:
        return self._set(machine, "ready")

    def maint(self, machine: str) -> list[Server]:
        return self._set(machine, "maint")

    def remove(self, machine: str, grace: float = GRACE) -> None:
        """Take a machine out of every backend for good, without a reload: no connection of another server notices.
        Its own may end by themselves for `grace` seconds; those that are left then, or whose server is gone already,
        are closed."""
        if not self._places(machine):
            return
        self.drain(machine)
        deadline = time.monotonic() + grace
        while any(server.is_in_use for server in self._places(machine)) and time.monotonic() < deadline:
            time.sleep(_TICK)
        self.maint(machine)
        for server in self._places(machine):
            self._delete(f"{server.backend}/{server.name}")

    def _delete(self, place: str) -> None:
        """The last closed connection may be a moment in going, and as long the server stays."""
        deadline = time.monotonic() + self._patience
        self._ask(f"shutdown sessions server {place}")
        while _DELETED not in (answer := self._ask(f"del server {place}")):
            if time.monotonic() > deadline:
                raise FalseworkError(f"the load balancer does not let go of {place}", cause=answer.strip() or None)
            time.sleep(_TICK)

    def _places(self, machine: str) -> list[Server]:
        return [server for server in self.state() if server.name == machine]

    def _set(self, machine: str, state: str) -> list[Server]:
        """In all backends the machine is in, with one request; what they are then."""
        servers = self.state()
        places = [server for server in servers if server.name == machine]
        if not places:
            known = sorted({server.name for server in servers})
            raise UsageError(
                f"the load balancer has no server {machine}",
                cause=f"it has {', '.join(known) or 'none'}",
                fix="name one of these",
            )
        commands = [f"set server {server.backend}/{server.name} state {state}" for server in places]
        answer = self._ask(";".join(commands)).strip()
        if answer:
            raise FalseworkError(f"the load balancer did not make {machine} {state}", cause=answer.splitlines()[0])
        return self._places(machine)

    def _ask(self, command: str) -> str:
        try:
            return command_line.ask(self._socket, command, self._patience)
        except TimeoutError:
            raise self._broken(f"it said nothing for {self._patience:.0f} s") from None
        except OSError as error:
            raise self._broken(error.strerror or str(error)) from None

    def _broken(self, cause: str) -> FalseworkError:
        return FalseworkError(
            "the load balancer does not answer",
            cause=f"{self._socket}: {cause}",
            fix="see whether it runs: `falsework exec HELPER -- systemctl status haproxy`",
        )


def serve_besides(machine: str, backend: str, servers: Sequence[Server]) -> list[str]:
    """Who else takes new connections of a backend."""
    return [
        server.name
        for server in servers
        if server.backend == backend and server.name != machine and server.status is Status.UP
    ]


def as_table(servers: Sequence[Server]) -> str:
    lines = [f"{'BACKEND':<24} {'SERVER':<16} {'ADDRESS':<22} {'STATUS':<7} {'SESSIONS':>8}  LAST CHECK"]
    for server in servers:
        backup = " (backup)" if server.backup else ""
        lines.append(
            f"{server.backend:<24} {server.name:<16} {server.address:<22} {server.status:<7} {server.sessions:>8}  "
            f"{server.check}{backup}"
        )
    return "\n".join(lines)


def _server(row: dict[str, str]) -> Server:
    # `UP 1/2` is on its way down, `MAINT (via …)` follows another one.
    word = row["status"].split(" ")[0]
    check = " ".join(filter(None, (row["check_status"].removeprefix("* "), row["last_chk"])))
    return Server(
        backend=row["pxname"],
        name=row["svname"],
        address=row["addr"],
        status=Status.UP if word == "no" else Status(word),
        backup=row["bck"] == "1",
        check=check,
        sessions=int(row["scur"]),
    )
