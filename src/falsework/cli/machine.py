"""falsework machine: the machines of a lab, one by one."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from pathlib import Path

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import UsageError
from falsework.lab.access import changing, looking_into
from falsework.lab.folder import Lab
from falsework.machines.nspawn import Nspawn
from falsework.machines.providers import machine_named, provider_of
from falsework.machines.retirement import standing
from falsework.process import become
from falsework.progress import Progress
from falsework.site.model import Helper, Machine, Role, Site
from falsework.site.records import everyone

_TICK = 0.1


def register(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every machine: what it is at, since when, what it uses")
    listing.add_argument("--json", action="store_true", help="as JSON")
    switches = [
        actions.add_parser(action, help=summary)
        for action, summary in (
            ("start", "switch machines on and wait until they are up"),
            ("stop", "let machines shut down, and wait until they are off"),
            ("kill", "pull the plug"),
        )
    ]
    for switch in switches:
        switch.add_argument("names", nargs="*", metavar="MACHINE")
        switch.add_argument("--all", action="store_true", help="every machine of the site but the helper")
    for switch in switches[1:]:
        switch.add_argument("--force", action="store_true", help="even a bootstrap that the cluster still needs")
    switches[0].add_argument("--no-wait", action="store_true", help="do not wait: they boot by themselves")
    console = actions.add_parser("console", help="what a machine's console has shown since it was made, with times")
    console.add_argument("--follow", "-f", action="store_true", help="go on until interrupted")
    running = actions.add_parser("exec", help="run a command in a machine: machine exec MACHINE -- COMMAND …")
    for named in (console, running):
        named.add_argument("name", metavar="MACHINE")
    running.add_argument("words", nargs="+", metavar="COMMAND")
    for action in (listing, *switches, console, running):
        add_folder_option(action)


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    lab = Lab.of(folder)
    with looking_into(lab):
        site = standing(site_in(folder), lab)
        provider = provider_of(lab)
        match options.action:
            case "list":
                _list(site, provider, as_json=options.json)
            case "console":
                _console(provider.console(machine_named(site, options.name).name), follow=options.follow)
            case "exec":
                become(provider.command(machine_named(site, options.name).name, options.words))
            case "start":
                _start(lab, site, _chosen(site, options), wait=not options.no_wait)
            case action:
                chosen = _chosen(site, options)
                # Before waiting for whoever changes the lab: a refusal comes at once.
                _guard(lab, site, chosen, f"falsework machine {action}", force=options.force)
                with changing(lab, _say):
                    for machine in chosen:
                        getattr(provider, action)(machine.name)
    return 0


def _guard(lab: Lab, site: Site, chosen: list[Machine | Helper], command: str, *, force: bool) -> None:
    from falsework.stages.context import Context
    from falsework.stages.guards import before_bootstrap_goes

    bootstraps = [machine for machine in chosen if isinstance(machine, Machine) and machine.role is Role.BOOTSTRAP]
    for machine in bootstraps:
        with closing(Context(lab, lambda: site, Progress())) as context:
            before_bootstrap_goes(context, f"{command} {machine.name}", force=force, say=_say)


def _chosen(site: Site, options: argparse.Namespace) -> list[Machine | Helper]:
    if bool(options.names) == options.all:
        raise UsageError("say which machines", fix="name them, or give --all")
    return list(site.machines) if options.all else [machine_named(site, name) for name in options.names]


def _start(lab: Lab, site: Site, chosen: list[Machine | Helper], *, wait: bool) -> None:
    from falsework.stages import machines
    from falsework.stages.context import Context

    with Progress() as progress, changing(lab, progress.say):
        context = Context(lab, lambda: site, progress)
        booting = [machine for machine in chosen if isinstance(machine, Machine)]
        for helper in (machine for machine in chosen if isinstance(machine, Helper)):
            machines.provider(context).start(helper.name)
        machines.switch_on(context, booting)
        if not wait:
            return
        with progress.task(", ".join(machine.name for machine in chosen)) as context.task:
            context.wait_for([machines.booted(context, machine) for machine in chosen])
        machines.expect_no_longer(context, booting)


def _list(site: Site, provider: Nspawn, *, as_json: bool) -> None:
    rows = [provider.described(machine.name) for machine in everyone(site)]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'MACHINE':<16} {'POWER':<8} {'FOR':>8} {'CPU':>9} {'MEMORY':>9}  DOING")
    for row in rows:
        cpu, memory = f"{row['cpuSeconds']:.1f} s", f"{row['memoryBytes'] >> 20} MiB"
        print(f"{row['name']:<16} {row['power']:<8} {_age(row['since']):>8} {cpu:>9} {memory:>9}  {row['doing']}")


def _age(since: float) -> str:
    seconds = int(time.time() - since)
    if not since:
        return "-"
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def _console(path: Path, *, follow: bool) -> None:
    if not path.exists():
        _say("it has never been switched on")
        return
    with path.open(errors="replace") as file:
        while True:
            for line in file:
                sys.stdout.write(line)
            sys.stdout.flush()
            if not follow:
                return
            time.sleep(_TICK)


def _say(sentence: str) -> None:
    print(f"falsework: {sentence}", file=sys.stderr)
