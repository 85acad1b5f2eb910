"""falsework shell: a shell in the lab's network, with the release's programs and the cluster's key."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.host import packages
from falsework.machines.view import PROGRAMS, View
from falsework.process import become


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", dest="script", metavar="COMMAND", help="run this there instead of asking")
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    view = view_of(options.dir)
    view.require()
    packages.ensure(["dig"], lambda sentence: print(f"falsework: {sentence}", file=sys.stderr))
    shell = os.environ.get("SHELL") or "bash"
    words: tuple[str, ...] = (shell,)
    if options.script is not None:
        words = (shell, "-c", options.script)
    elif sys.stdin.isatty():
        print(_where(view), file=sys.stderr)
        if Path(shell).name == "bash":
            words = (shell, "--rcfile", str(view.bash_settings()))
    become(view.command(words), view.environment(os.environ))


def _where(view: View) -> str:
    site = view.site
    there = ", ".join(name for name in PROGRAMS if (view.lab.programs / name).exists())
    return (
        f"in the network of {site.domain} ({site.lab.cidr}, name server {site.helper.address})"
        f"{f', with {there}' if there else ''}; `exit` leaves it"
    )
