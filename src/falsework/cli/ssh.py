"""falsework ssh: a machine's own SSH server, asked from within the lab."""

from __future__ import annotations

import argparse
import os
import sys

from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.host import packages
from falsework.machines import ssh
from falsework.machines.providers import machine_named, provider_of, require_power
from falsework.process import become

OWN_WORDS = 1


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("machine", metavar="MACHINE", help="then, if not to log in: -- COMMAND …")
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    view = view_of(options.dir)
    machine = machine_named(view.site, options.machine)
    view.require()
    provider = provider_of(view.lab)
    require_power(machine, provider.state(machine.name))
    packages.ensure(["ssh"], lambda sentence: print(f"falsework: {sentence}", file=sys.stderr))
    words = ssh.command(view.site, view.lab, machine, provider.read_file, options.passed_on)
    become(view.command(words), view.environment(os.environ))
