"""machine-config-server on the bootstrap machine: there is no API yet, so all it knows is in files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from falsework.config_server import records, rules
from falsework.config_server.files import Files
from falsework.config_server.records import Ledger, Served, boot_id, complain
from falsework.config_server.server import PORT, MachineConfigServer, serve
from falsework.web.door import Certificate
from falsework.web.watched import Watched

CONFIGS = "/etc/mcs/bootstrap"
CERTIFICATES = "/etc/ssl/mcs"
SITE = "site.json"


@dataclass(frozen=True)
class Settings:
    configs: Path
    certificates: Path
    state: Path
    boot_id: Path
    pool: tuple[str, ...]
    address: str
    port: int


def main(words: Sequence[str]) -> int:
    settings = _settings(words)
    settings.state.mkdir(parents=True, exist_ok=True)
    site = Watched(settings.configs / SITE, rules.parse_site, rules.NOBODY)
    try:
        certificate = Certificate(settings.certificates / "tls.crt", settings.certificates / "tls.key")
        served = Served(settings.state, boot_id(settings.boot_id))
    except (OSError, ValueError) as error:
        # The kubelet starts us again, and by then it may be there.
        complain(f"cannot start: {error}")
        return 1
    server = MachineConfigServer(Files(settings.configs), site, settings.pool, Ledger(settings.state), served)
    return serve(server, site, certificate, settings.address, settings.port)


def _settings(words: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(prog="machine-config-server", description="Tells machines what to become.")
    parser.add_argument("--configs", type=Path, default=Path(CONFIGS))
    parser.add_argument("--certificates", type=Path, default=Path(CERTIFICATES), help="has tls.crt and tls.key")
    parser.add_argument("--state", type=Path, default=Path(records.FOLDER))
    parser.add_argument("--boot-id", type=Path, default=Path(records.BOOT_ID))
    parser.add_argument("--pool", action="append", help="a pool to serve, can be repeated (default: master)")
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=PORT)
    given = vars(parser.parse_args(words))
    return Settings(**{**given, "pool": tuple(given["pool"] or ("master",))})
