"""falsework wait-for: until the bootstrap, or the whole, is complete, in the words and with the exit codes of
openshift-install."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from falsework.checks.bootstrap_complete import BootstrapComplete
from falsework.checks.install_complete import InstallComplete
from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.kube.cluster import Cluster
from falsework.kube.connection import Patience
from falsework.machines.lab_api import lab_client

_PATIENCE = Patience(connect=2, answer=10)


def register(parser: argparse.ArgumentParser) -> None:
    targets = parser.add_subparsers(dest="target", metavar="TARGET", required=True)
    bootstrap = targets.add_parser(
        "bootstrap-complete",
        help="wait until the masters have taken over and the bootstrap's etcd member is removed",
        description="Wait until the bootstrap can go. Exit code 0 then, 5 if it did not come to that in time.",
    )
    install = targets.add_parser(
        "install-complete",
        help="wait until the cluster has all of its release and every operator is at rest",
        description="Wait until the cluster is finished. Exit code 0 then, 6 if it did not come to that in time, 7 if "
        "an operator did not come to rest.",
    )
    for target in (bootstrap, install):
        add_folder_option(target)
        target.add_argument("--log-level", choices=("debug", "info", "warn", "error"), default="info")


def run(options: argparse.Namespace) -> int:
    inform = (lambda _: None) if options.log_level in ("warn", "error") else _inform
    view = view_of(options.dir)
    with closing(Cluster(lab_client(view, _PATIENCE))) as cluster:
        if options.target == "bootstrap-complete":
            BootstrapComplete(cluster, inform, _complain).wait()
        else:
            InstallComplete(cluster, inform, _complain, folder=view.lab.site_folder).wait()
    return 0


def _inform(line: str) -> None:
    print(f"INFO {line}", file=sys.stderr, flush=True)


def _complain(line: str) -> None:
    print(f"ERROR {line}", file=sys.stderr, flush=True)
