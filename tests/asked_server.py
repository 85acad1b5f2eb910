"""What servers are asked by machines, whose addresses are on loopback, and what they write down of it."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from typing import Any

from eventually import eventually
from falsework.site.load import default_site
from falsework.site.model import Site

SERVER = "127.0.0.1"
STRANGER = "127.0.0.99"


def site_on_loopback() -> Site:
    site = default_site()
    machines = tuple(
        dataclasses.replace(machine, address=IPv4Address("127.0.0.10") + index)
        for index, machine in enumerate(site.machines)
    )
    return dataclasses.replace(site, machines=machines)


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


def answer_to(connection: http.client.HTTPConnection, method: str, path: str, headers: Mapping[str, str]) -> Answer:
    """With these headers and no others; the connection is closed."""
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return Answer(response.status, response.read(), {name.lower(): value for name, value in response.getheaders()})


def last_line(
    lines: Callable[[], list[dict[str, Any]]], key: str, value: str, expected: Mapping[str, object]
) -> dict[str, Any]:
    """The last one with this value, once it says what is expected: it may come after the answer."""

    def last() -> dict[str, Any]:
        return next((line for line in reversed(lines()) if line[key] == value), {})

    eventually(lambda: expected.items() <= last().items(), f"{value}: {expected} was not written down")
    return last()
