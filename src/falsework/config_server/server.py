"""The Machine Config Server: what a machine is to become, told to that machine alone.

HTTPS on port 22623: `/config/<pool>` and `/healthz`, nothing else, and nothing without TLS: in every config is the
credential of the machine it is for.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol

from falsework.assets.served_config import with_join_credential
from falsework.config_server import rules
from falsework.config_server.accept_header import NATIVE, Unserved, wanted_spec
from falsework.config_server.older_specs import in_spec
from falsework.config_server.records import Ledger, complain
from falsework.config_server.rules import Allowed, KnownSite, Refused
from falsework.config_server.source import BadConfigError, ConfigSource, NoSuchConfigError
from falsework.web.answers import Answer, line_for_the_ledger, sentence, shown
from falsework.web.door import Certificate, Door
from falsework.web.messages import Request, response_head
from falsework.web.server import run

PORT = 22623
_KEPT = 64
"""Finished configs that are kept: a machine whose connection breaks asks again."""


class Site(Protocol):
    """Who belongs to the site, as far as that is known at this moment."""

    problem: str
    """Why nobody is known; empty if somebody is."""

    def value(self) -> KnownSite: ...


class Notes(Protocol):
    def note(self, machine: str, config: str) -> None:
        """A machine has had its whole config. It must not take long: others are served by the same thread."""


class MachineConfigServer:
    nonsense = "This is not a request for a config."

    def __init__(self, source: ConfigSource, site: Site, pools: Sequence[str], ledger: Ledger, served: Notes) -> None:
        self._source, self._site, self._pools = source, site, pools
        self._ledger, self._served = ledger, served
        self._bodies: OrderedDict[object, bytes] = OrderedDict()
        self._given: dict[str, str] = {}
        """Machine → the name of the config it was last answered with."""

    def answer(self, request: Request, client: str) -> Answer:
        asked = shown(f"{request.method} {request.target}")
        if request.target == rules.HEALTH:
            return Answer(asked, HTTPStatus.OK, _head(request, "text/plain; charset=utf-8", 0), request.keep_alive)
        site = self._site.value()
        decision = rules.decide(request.target, client, site, self._pools)
        if isinstance(decision, Allowed):
            return self._config(asked, request, decision)
        if decision.status is HTTPStatus.FORBIDDEN and self._site.problem:
            # Nobody is known, and that is not their fault: it is worth asking again.
            because = self._site.problem
            decision = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "The server is not ready.", because)
        return sentence(asked, decision.status, decision.sentence, decision.because, request)

    def done(self, client: str, answer: Answer) -> None:
        if answer.asked.endswith(f" {rules.HEALTH}") and answer.status is HTTPStatus.OK:
            # Twice a second from every load balancer.
            return
        machine = self._site.value().machines.get(client)
        self._ledger.write(line_for_the_ledger("mcs", client, machine.name if machine else None, answer))
        if answer.machine and answer.end and answer.sent == answer.end:
            self._served.note(answer.machine, self._given[answer.machine])

    def _config(self, asked: str, request: Request, allowed: Allowed) -> Answer:
        spec = wanted_spec(request.headers.get("accept", ""))
        if isinstance(spec, Unserved):
            status = HTTPStatus.BAD_REQUEST if spec is Unserved.UNSUPPORTED else HTTPStatus.INTERNAL_SERVER_ERROR
            text = f"This spec of Ignition is not served: ask for {NATIVE[0]}.{NATIVE[1]}.0."
            return sentence(asked, status, text, spec.value, request)
        try:
            body = self._body(allowed, spec)
        except NoSuchConfigError as error:
            return sentence(asked, HTTPStatus.NOT_FOUND, "There is no such config.", str(error), request)
        except (BadConfigError, ValueError) as error:
            text = "The config cannot be served."
            return sentence(asked, HTTPStatus.INTERNAL_SERVER_ERROR, text, str(error), request)
        head = _head(request, "application/json", len(body))
        if request.method == "HEAD":
            return Answer(asked, HTTPStatus.OK, head, request.keep_alive)
        machine = allowed.machine.name
        return Answer(asked, HTTPStatus.OK, head, request.keep_alive, body=body, end=len(body), machine=machine)

    def _body(self, allowed: Allowed, spec: tuple[int, int]) -> bytes:
        machine = allowed.machine.name
        found = self._source.config(allowed.pool)
        joining, credential = self._source.join_credential(machine)
        self._given[machine] = found.name
        key = (found.version, machine, joining, spec)
        if key not in self._bodies:
            config = found.config if spec == NATIVE else in_spec(found.config, spec)
            whole = with_join_credential(config, credential)
            whole["ignition"] = {**whole["ignition"], "version": f"{spec[0]}.{spec[1]}.0"}
            self._bodies[key] = json.dumps(whole, separators=(",", ":")).encode()
            if len(self._bodies) > _KEPT:
                self._bodies.popitem(last=False)
        return self._bodies[key]


def _head(request: Request, kind: str, length: int) -> bytes:
    headers = {"Content-Type": kind, "Content-Length": str(length), "Cache-Control": "no-store"}
    return response_head(HTTPStatus.OK, headers, request.keep_alive)


def serve(server: MachineConfigServer, site: Site, certificate: Certificate, address: str, port: int) -> int:
    """Until told to stop; the exit code."""
    door = Door(certificate.context, lambda: site.value().balancers)
    try:
        run(server, address, port, door)
    except OSError as error:
        complain(f"cannot listen on {address}:{port}: {error.strerror}")
        return 1
    return 0
