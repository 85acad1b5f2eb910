"""The Machine Config Server: what a machine is to become, told to that machine alone.

HTTPS on port 22623: `/config/<pool>` and `/healthz`, nothing else, and nothing without TLS: in every config is the
credential of the machine it is for.
"""

from __future__ import annotations

import argparse
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from falsework.assets.served_config import with_join_credential
from falsework.bootstrap import mcs_records, mcs_rules
from falsework.bootstrap.accept_header import NATIVE, Unserved, wanted_spec
from falsework.bootstrap.config_source import BadConfigError, ConfigSource, Files, NoSuchConfigError
from falsework.bootstrap.mcs_records import Ledger, Served, boot_id, complain
from falsework.bootstrap.mcs_rules import Allowed, KnownSite, Refused
from falsework.bootstrap.older_specs import in_spec
from falsework.web.answers import Answer, line_for_the_ledger, sentence, shown
from falsework.web.door import Certificate, Door
from falsework.web.messages import Request, response_head
from falsework.web.server import run
from falsework.web.watched import Watched

PORT = 22623
CONFIGS = "/etc/mcs/bootstrap"
CERTIFICATES = "/etc/ssl/mcs"
SITE = "site.json"
_KEPT = 64
"""Finished configs that are kept: a machine whose connection breaks asks again."""


@dataclass(frozen=True)
class Settings:
    configs: Path
    certificates: Path
    state: Path
    boot_id: Path
    pool: tuple[str, ...]
    address: str
    port: int


class MachineConfigServer:
    nonsense = "This is not a request for a config."

    def __init__(
        self, source: ConfigSource, site: Watched[KnownSite], pools: Sequence[str], ledger: Ledger, served: Served
    ) -> None:
        self._source, self._site, self._pools = source, site, pools
        self._ledger, self._served = ledger, served
        self._bodies: OrderedDict[object, bytes] = OrderedDict()
        self._given: dict[str, str] = {}
        """Machine → the name of the config it was last answered with."""

    def answer(self, request: Request, client: str) -> Answer:
        asked = shown(f"{request.method} {request.target}")
        if request.target == mcs_rules.HEALTH:
            return Answer(asked, HTTPStatus.OK, _head(request, "text/plain; charset=utf-8", 0), request.keep_alive)
        site = self._site.value()
        decision = mcs_rules.decide(request.target, client, site, self._pools)
        if isinstance(decision, Allowed):
            return self._config(asked, request, decision)
        if decision.status is HTTPStatus.FORBIDDEN and self._site.problem:
            # Nobody is known, and that is not their fault: it is worth asking again.
            because = self._site.problem
            decision = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "The server is not ready.", because)
        return sentence(asked, decision.status, decision.sentence, decision.because, request)

    def done(self, client: str, answer: Answer) -> None:
        if answer.asked.endswith(f" {mcs_rules.HEALTH}") and answer.status is HTTPStatus.OK:
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


def _settings(words: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(prog="machine-config-server", description="Tells machines what to become.")
    parser.add_argument("--configs", type=Path, default=Path(CONFIGS))
    parser.add_argument("--certificates", type=Path, default=Path(CERTIFICATES), help="has tls.crt and tls.key")
    parser.add_argument("--state", type=Path, default=Path(mcs_records.FOLDER))
    parser.add_argument("--boot-id", type=Path, default=Path(mcs_records.BOOT_ID))
    parser.add_argument("--pool", action="append", help="a pool to serve, can be repeated (default: master)")
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=PORT)
    given = vars(parser.parse_args(words))
    return Settings(**{**given, "pool": tuple(given["pool"] or ("master",))})


def main(words: Sequence[str]) -> int:
    settings = _settings(words)
    settings.state.mkdir(parents=True, exist_ok=True)
    site = Watched(settings.configs / SITE, mcs_rules.parse_site, mcs_rules.NOBODY)
    try:
        certificate = Certificate(settings.certificates / "tls.crt", settings.certificates / "tls.key")
        served = Served(settings.state, boot_id(settings.boot_id))
    except (OSError, ValueError) as error:
        # The kubelet starts us again, and by then it may be there.
        complain(f"cannot start: {error}")
        return 1
    server = MachineConfigServer(Files(settings.configs), site, settings.pool, Ledger(settings.state), served)
    door = Door(certificate.context, lambda: site.value().balancers)
    try:
        run(server, settings.address, settings.port, door)
    except OSError as error:
        complain(f"cannot listen on {settings.address}:{settings.port}: {error.strerror}")
        return 1
    return 0
