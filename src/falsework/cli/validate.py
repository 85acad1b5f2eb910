"""falsework validate: all that is wrong with a site's files, before anything is touched."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from falsework.cli.site_folder import DEFAULT_FOLDER, add_folder_option, examined_in
from falsework.site.load import examine
from falsework.site.model import Site
from falsework.site.problems import SiteError, counted


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check install-config.yaml and site.yaml in a folder: all problems at once, each with its line and column, "
        "what is wrong and what would be right. A file that is not there stands for its defaults. Nothing is "
        "changed. Exit code 0 when the site can be used (warnings are printed), 2 when it cannot."
    )
    add_folder_option(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help='print {"problems": [{severity, file, line, column, what, right}, …]} instead of sentences',
    )


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    # A folder somebody names should be there; the one nobody named need not.
    examined = examined_in(folder) if folder == DEFAULT_FOLDER else examine(folder)
    if options.json:
        print(json.dumps({"problems": [problem.as_json() for problem in examined.problems]}, indent=2))
        return 0 if examined.site else SiteError.exit_code
    if examined.site is None:
        raise SiteError(examined.problems)
    for problem in examined.warnings:
        print(problem)
    print(summary(examined.site))
    return 0


def summary(site: Site) -> str:
    machines = f"{counted(len(site.masters), 'master')} and {counted(len(site.workers), 'worker')}"
    providers = ", ".join(sorted({str(machine.provider) for machine in site.machines}))
    return f"{site.domain}: {site.distribution} on {machines} ({providers}), network {site.lab.cidr}: good"
