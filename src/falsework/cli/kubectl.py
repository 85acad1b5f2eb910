"""falsework kubectl: the release's kubectl, in the lab. All words but --dir (which comes first) are kubectl's."""

from __future__ import annotations

import argparse
import os

from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.process import become

OWN_WORDS = 0


def register(parser: argparse.ArgumentParser) -> None:
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    view = view_of(options.dir)
    view.require()
    words = (view.program("kubectl"), *options.passed_on)
    become(view.command(words), view.environment(os.environ))
