"""falsework balancer: what the load balancer thinks of the machines, and machines taken out of it and put back."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.helper.balancer import Balancer, as_table
from falsework.helper.render.haproxy import RUNTIME_SOCKET
from falsework.lab.folder import Lab
from falsework.machines.providers import provider_of
from falsework.machines.view import require_root


def register(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    state = actions.add_parser("state", help="list every server of every backend")
    state.add_argument("--json", action="store_true", help="as JSON")
    add_folder_option(state)
    for name, summary in (
        ("drain", "give a machine no new connections; those it has may end by themselves"),
        ("ready", "give it connections again, as its checks allow"),
        ("maint", "give it no connections and do not check it"),
    ):
        action = actions.add_parser(name, help=summary)
        action.add_argument("machine", metavar="MACHINE")
        add_folder_option(action)


def run(options: argparse.Namespace) -> int:
    balancer = Balancer(runtime_socket(options.dir))
    match options.action:
        case "drain":
            servers = balancer.drain(options.machine)
        case "ready":
            servers = balancer.ready(options.machine)
        case "maint":
            servers = balancer.maint(options.machine)
        case _:
            servers = balancer.state()
            if options.json:
                print(json.dumps([dataclasses.asdict(server) for server in servers], indent=1))
                return 0
    print(as_table(servers))
    return 0


def runtime_socket(folder: Path) -> Path:
    """The socket in the running helper, seen from the host through its first process."""
    helper = site_in(folder).helper
    require_root()
    init = provider_of(Lab.of(folder)).init(helper.name)
    return Path(f"/proc/{init}/root{RUNTIME_SOCKET}")
