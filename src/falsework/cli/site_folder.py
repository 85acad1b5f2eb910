"""What the commands about a site share: where its folder is, and the site in it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from falsework.site.load import default_site, examine
from falsework.site.model import Site
from falsework.site.problems import SiteError


def add_folder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="the folder with install-config.yaml and site.yaml, and for what is made (default: this one)",
    )


def site_in(folder: Path) -> Site:
    """The folder's site, with its warnings told. A folder that is not there yet has the default site."""
    if not folder.exists():
        return default_site()
    examined = examine(folder)
    if examined.site is None:
        raise SiteError(examined.problems)
    for problem in examined.warnings:
        print(f"falsework: {problem}", file=sys.stderr)
    return examined.site
