"""falsework machine: the machines of a lab, one by one."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import NoReturn

from falsework.cli.site_folder import add_folder_option
from falsework.errors import UsageError
from falsework.lab.folder import Lab
from falsework.machines.nspawn import Nspawn
from falsework.machines.providers import provider_of
from falsework.process import become

_ALL = "--all"
_TICK = 0.1


def register(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every machine: what it is at, since when, what it uses")
    listing.add_argument("--json", action="store_true", help="as JSON")
    for action, summary in (
        ("start", "switch machines on; they boot by themselves"),
        ("stop", "let machines shut down, and wait until they are off"),
        ("kill", "pull the plug"),
    ):
        switching = actions.add_parser(action, help=summary)
        switching.add_argument("names", nargs="*", metavar="MACHINE")
        switching.add_argument(_ALL, action="store_true", help="every machine of the lab but the helper")
        add_folder_option(switching)
    console = actions.add_parser("console", help="what a machine's console has shown since it was made, with times")
    console.add_argument("--follow", "-f", action="store_true", help="go on until interrupted")
    running = actions.add_parser("exec", help="run a command in a machine: machine exec MACHINE -- COMMAND …")
    for named in (console, running):
        named.add_argument("name", metavar="MACHINE")
    running.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    for sub in (listing, console, running):
        add_folder_option(sub)


def run(options: argparse.Namespace) -> int:
    provider = provider_of(Lab.of(options.dir))
    match options.action:
        case "list":
            _list(provider, as_json=options.json)
        case "console":
            _console(provider.console(_known(provider, options.name)), follow=options.follow)
        case "exec":
            run_inside(provider, options.name, options.words)
        case action:
            for name in _chosen(provider, options):
                getattr(provider, action)(name)
    return 0


def run_inside(provider: Nspawn, name: str, words: list[str]) -> NoReturn:
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise UsageError("there is no command to run", fix=f"falsework exec {name} -- COMMAND …")
    become(provider.command(_known(provider, name), words))


def _known(provider: Nspawn, name: str) -> str:
    names = provider.names()
    if name not in names:
        raise UsageError(
            f"there is no machine {name}",
            cause=f"the lab has {', '.join(names)}" if names else "the lab has no machines",
            fix="name one of these" if names else "run `falsework up`",
        )
    return name


def _chosen(provider: Nspawn, options: argparse.Namespace) -> list[str]:
    if bool(options.names) == options.all:
        raise UsageError("say which machines", fix=f"name them, or give {_ALL}")
    if options.all:
        return [name for name in provider.names() if provider.boots_from_network(name)]
    return [_known(provider, name) for name in options.names]


def _list(provider: Nspawn, *, as_json: bool) -> None:
    rows = []
    for name in provider.names():
        state, usage = provider.state(name), provider.usage(name)
        rows.append(
            {
                "name": name,
                "power": str(state.power),
                "doing": state.doing,
                "since": state.since,
                "cpuSeconds": round(usage.cpu_seconds, 2),
                "memoryBytes": usage.memory_bytes,
            }
        )
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'MACHINE':<16} {'POWER':<8} {'FOR':>8} {'CPU':>8} {'MEMORY':>8}  DOING")
    for row in rows:
        print(
            f"{row['name']:<16} {row['power']:<8} {_age(float(str(row['since']))):>8} {row['cpuSeconds']:>6} s "
            f"{int(str(row['memoryBytes'])) >> 20:>4} MiB  {row['doing']}"
        )


def _age(since: float) -> str:
    seconds = int(time.time() - since)
    if not since:
        return "-"
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def _console(path: Path, *, follow: bool) -> None:
    if not path.exists():
        print("it has never been switched on", file=sys.stderr)
        return
    with path.open(errors="replace") as file:
        while True:
            for line in file:
                sys.stdout.write(line)
            sys.stdout.flush()
            if not follow:
                return
            time.sleep(_TICK)
