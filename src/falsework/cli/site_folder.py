"""What the commands about a site share: where its folder is, and the site in it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from falsework.assets.graph import STATE_FILE
from falsework.site import install_config, site_config
from falsework.site.load import Examined, default_site, examine
from falsework.site.model import Site
from falsework.site.problems import SiteError

SITE_FILES = (install_config.FILE, site_config.FILE, STATE_FILE)
DEFAULT_FOLDER = Path("lab")


def add_folder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir",
        type=Path,
        default=default_folder(),
        metavar="FOLDER",
        help="the folder with install-config.yaml and site.yaml, and for what is made (default: this one if it has "
        f"one of them or what was made from them, else ./{DEFAULT_FOLDER})",
    )


def default_folder() -> Path:
    """This folder if it is a site's, else one below it: nothing is strewn about where somebody happens to be."""
    here = Path()
    return here if any((here / name).exists() for name in SITE_FILES) else DEFAULT_FOLDER


def examined_in(folder: Path) -> Examined:
    """A folder that is not there yet has the default site."""
    return examine(folder) if folder.exists() else Examined(default_site(), ())


def site_in(folder: Path) -> Site:
    """The folder's site, with its warnings told."""
    examined = examined_in(folder)
    if examined.site is None:
        raise SiteError(examined.problems)
    for problem in examined.warnings:
        print(f"falsework: {problem}", file=sys.stderr)
    return examined.site
