"""falsework balancer: what the load balancer thinks of the machines, and machines taken out of it and put back."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.helper.balancer import as_table
from falsework.lab.folder import Lab
from falsework.machines.view import require_root
from falsework.progress import Progress
from falsework.stages import machines
from falsework.stages.context import Context
from falsework.stages.guards import before_server_goes


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
        if name != "ready":
            action.add_argument("--force", action="store_true", help="even the only API server there is")
        add_folder_option(action)


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    site = site_in(folder)
    require_root()
    balancer = machines.balancer(Context(Lab.of(folder), lambda: site, Progress()))
    if options.action == "state":
        servers = balancer.state()
        if options.json:
            print(json.dumps([dataclasses.asdict(server) for server in servers], indent=1))
            return 0
    elif options.action == "ready":
        servers = balancer.ready(options.machine)
    else:
        command = f"falsework balancer {options.action} {options.machine}"
        before_server_goes(balancer, options.machine, command, force=options.force, say=_say)
        servers = getattr(balancer, options.action)(options.machine)
    print(as_table(servers))
    return 0


def _say(sentence: str) -> None:
    print(f"falsework: {sentence}", file=sys.stderr)
