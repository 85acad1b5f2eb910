"""falsework exec: one command in a machine."""

from __future__ import annotations

import argparse
import os

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import UsageError
from falsework.lab.folder import Lab
from falsework.machines.providers import machine_named, provider_of, require_power
from falsework.machines.view import require_root
from falsework.process import become

OWN_WORDS = 1


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("machine", metavar="MACHINE", help="then: -- COMMAND …")
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    machine = machine_named(site_in(options.dir), options.machine)
    if not options.passed_on:
        raise UsageError("there is no command to run", fix=f"falsework exec {machine.name} -- COMMAND …")
    require_root()
    provider = provider_of(Lab.of(options.dir))
    require_power(machine, provider.state(machine.name))
    become(provider.command(machine.name, options.passed_on), os.environ)
