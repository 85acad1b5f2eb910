"""falsework wait-for: until the bootstrap is complete, in the words and with the exit codes of openshift-install."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from falsework.checks.bootstrap_complete import BootstrapComplete
from falsework.checks.cluster import Cluster
from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.kube.connection import Patience
from falsework.machines.lab_api import lab_client

_PATIENCE = Patience(connect=2, answer=10)


def register(parser: argparse.ArgumentParser) -> None:
    targets = parser.add_subparsers(dest="target", metavar="TARGET", required=True)
    target = targets.add_parser(
        "bootstrap-complete",
        help="wait until the masters have taken over and the bootstrap's etcd member is removed",
        description="Wait until the bootstrap can go. Exit code 0 then, 5 if it did not come to that in time.",
    )
    add_folder_option(target)
    target.add_argument("--log-level", choices=("debug", "info", "warn", "error"), default="info")


def run(options: argparse.Namespace) -> int:
    quiet = options.log_level in ("warn", "error")
    with closing(Cluster(lab_client(view_of(options.dir), _PATIENCE))) as cluster:
        BootstrapComplete(cluster, (lambda _: None) if quiet else _inform, _complain).wait()
    return 0


def _inform(line: str) -> None:
    print(f"INFO {line}", file=sys.stderr, flush=True)


def _complain(line: str) -> None:
    print(f"ERROR {line}", file=sys.stderr, flush=True)
