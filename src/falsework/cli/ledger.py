"""falsework ledger: who asked the helper for what, and what came of it."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
from collections.abc import Callable, Iterable, Sequence

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import FalseworkError, UsageError
from falsework.helper.ledger import journal_command, read
from falsework.helper.ledger_entry import LedgerEntry, Repeated, Service, folded
from falsework.lab.folder import Lab
from falsework.process import CommandError, lines
from falsework.site.model import Site
from falsework.site.records import everyone

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
    command = _helper(Lab.of(options.dir), site)(journal_command(follow=options.follow))
    try:
        show(lines(command, quiet=_QUIET), site, machine, options)
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


def show(journal: Iterable[str], site: Site, machine: str | None, options: argparse.Namespace) -> None:
    service = options.service
    entries = (
        entry
        for entry in read(journal, site)
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
    if given is None:
        return None
    name = given.removesuffix(f".{site.domain}")
    if any(machine.name == name for machine in everyone(site)):
        return name
    if ":" in given or given.replace(".", "").isdigit():
        return given.lower()
    raise UsageError(
        f"there is no machine {given} in the site",
        fix=f"name one of {', '.join(machine.name for machine in everyone(site))}; or an address, or a MAC",
    )


def _helper(lab: Lab, site: Site) -> InHelper:
    provider = importlib.import_module("falsework.machines.providers").provider_of(lab)
    command: Callable[[str, Sequence[str]], tuple[str, ...]] = provider.command
    return lambda words: command(site.helper.name, words)
