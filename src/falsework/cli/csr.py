"""falsework csr: which machines ask for certificates, why one is not given, and giving it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

from falsework.checks.requests import Requests
from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.csr.decisions import Noted
from falsework.kube.connection import Patience
from falsework.machines.lab_api import lab_client
from falsework.machines.provider import Power
from falsework.machines.providers import provider_of, require_power
from falsework.machines.retirement import is_retired

_PATIENCE = Patience(connect=5, answer=15)


def register(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="show every certificate request, and why it is not approved")
    listing.add_argument("--json", action="store_true", help="print JSON")
    approving = actions.add_parser("approve", help="approve a certificate request")
    approving.add_argument("name", metavar="NAME")
    approving.add_argument("--force", action="store_true", help="whatever the rules say")
    for action in (listing, approving):
        add_folder_option(action)


def run(options: argparse.Namespace) -> int:
    requests = _requests(options)
    if options.action == "approve":
        done = requests.approve(options.name, force=options.force)
        print(f"falsework: {done.name} is approved: {done.message}", file=sys.stderr)
        return 0
    found = requests.all()
    if options.json:
        print(json.dumps([asdict(entry) for entry in found], indent=1))
    else:
        print("\n".join(_table(found, datetime.now(UTC))))
    return 0


def _requests(options: argparse.Namespace) -> Requests:
    view = view_of(options.dir)
    client = lab_client(view, _PATIENCE)
    provider, bootstrap = provider_of(view.lab), view.site.bootstrap

    def read_file(path: str) -> bytes:
        if is_retired(view.lab):
            raise FileNotFoundError(path)
        state = provider.state(bootstrap.name)
        if state.power is not Power.RUNNING:
            require_power(bootstrap, state)
        return provider.read_file(bootstrap.name, path)

    return Requests(client, view.site, read_file)


def _table(entries: list[Noted], now: datetime) -> list[str]:
    rows = [("NAME", "AGE", "MACHINE", "KIND", "STATE", "WHY NOT APPROVED")]
    age = partial(_age, now=now)
    rows += [
        (entry.name, age(entry.created), entry.machine or "-", entry.kind, entry.state, _why(entry))
        for entry in entries
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def _why(entry: Noted) -> str:
    return "" if entry.decision == "approve" else entry.message


def _age(created: str, now: datetime) -> str:
    try:
        seconds = int((now - datetime.fromisoformat(created)).total_seconds())
    except ValueError:
        return "-"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"
