"""falsework ledger: who asked the helper, or a Machine Config Server, for what, and what came of it."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import FalseworkError
from falsework.helper.ledger import ConfigServers, journal_command, read
from falsework.helper.ledger_entry import LedgerEntry, Repeated, Service, folded
from falsework.lab.folder import Lab
from falsework.machines.provider import Power
from falsework.machines.providers import machine_named, provider_of, require_power
from falsework.machines.view import require_root
from falsework.process import CommandError, lines
from falsework.site.model import Site

_QUIET = 0.3
"""Seconds without a record after which an answer is taken to be complete."""

InHelper = Callable[[Sequence[str]], tuple[str, ...]]
"""What to run on this host so that a command runs in the helper."""


def register(parser: argparse.ArgumentParser) -> None:
    add_folder_option(parser)
    parser.add_argument("--machine", metavar="NAME", help="only what this machine asked for; or an address, or a MAC")
    parser.add_argument("--service", choices=[str(service) for service in Service], help="only this service")
    parser.add_argument("--follow", action="store_true", help="go on with what is asked from now on, until interrupted")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, repeats included")


def run(options: argparse.Namespace) -> int:
    site = site_in(options.dir)
    machine = _machine(site, options.machine)
    lab = Lab.of(options.dir)
    command = _helper(lab, site)(journal_command(follow=options.follow))
    try:
        show(lines(command, quiet=_QUIET), site, machine, options, _config_servers(lab, site))
    except CommandError as error:
        raise FalseworkError(
            "the helper's journal cannot be read",
            cause=error.cause,
            fix="look at `falsework machine list`: the helper must be running",
        ) from None
    except KeyboardInterrupt:
        # There is no other way to end it.
        if not options.follow:
            raise
    return 0


def show(
    journal: Iterable[str],
    site: Site,
    machine: str | None,
    options: argparse.Namespace,
    others: ConfigServers | None = None,
) -> None:
    service = options.service
    found = read(journal, site, others if service in (None, Service.MCS) else None)
    entries = (
        entry
        for entry in (found if options.follow else sorted(found, key=lambda entry: entry.time))
        if (machine is None or machine in (entry.machine, entry.client)) and service in (None, entry.service)
    )
    if options.json:
        for entry in entries:
            print(json.dumps(dataclasses.asdict(entry)), flush=options.follow)
    elif options.follow:
        for entry in entries:
            print(_line(entry), flush=True)
    else:
        for repeated in folded(entries):
            print(repeated.line())


def _line(entry: LedgerEntry) -> str:
    return Repeated(entry, 1, entry.time).line()


def _machine(site: Site, given: str | None) -> str | None:
    """A machine's name, from its short or full one; a stranger has only its address or its MAC."""
    if given is None or ":" in given or given.replace(".", "").isdigit():
        return given.lower() if given else None
    return machine_named(site, given).name


def _config_servers(lab: Lab, site: Site) -> ConfigServers:
    provider = provider_of(lab)

    def content(machine: str, path: str) -> bytes | None:
        try:
            return provider.read_file(machine, path) if provider.state(machine).power is Power.RUNNING else None
        except (FileNotFoundError, CommandError):
            # It has none, or was switched off as we asked.
            return None

    return ConfigServers(site, [machine.name for machine in (site.bootstrap, *site.masters)], content)


def _helper(lab: Lab, site: Site) -> InHelper:
    require_root()
    provider = provider_of(lab)
    require_power(site.helper, provider.state(site.helper.name))
    return lambda words: provider.command(site.helper.name, words)
