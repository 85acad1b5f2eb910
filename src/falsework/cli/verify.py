"""falsework verify: every check of the guides, and those people expect beyond. Changes nothing."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from falsework.checks.verify import report, runner
from falsework.checks.verify.catalogue import all_checks
from falsework.checks.verify.commands import Commands
from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Outcome
from falsework.checks.verify.snapshot import Snapshot
from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.files import write_file
from falsework.kube.connection import Patience
from falsework.machines.lab_api import lab_client
from falsework.machines.providers import provider_of
from falsework.progress import Progress

FORMS = {"table": report.as_table, "json": report.as_json, "junit": report.as_junit}
_PATIENCE = Patience(connect=2, answer=10)


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Verify the cluster: every check that the guides print, and what people expect beyond. Only looks, so it is "
        "safe at any time. Exit code 0 when nothing failed, 1 when something did."
    )
    add_folder_option(parser)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CHECK",
        help="only checks with this id, or whose id begins with it (`000`, `000/test`, `etcd`); may be given again",
    )
    parser.add_argument("-o", dest="form", choices=tuple(FORMS), default="table", help="the form (default: table)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it there instead of printing it")
    parser.add_argument(
        "--limit",
        type=float,
        default=runner.LIMIT,
        metavar="SECONDS",
        help="for all checks together; what has not been asked by then has failed (default: %(default).0f)",
    )
    parser.add_argument("--list", action="store_true", help="list the checks with their sources; ask nobody")


def run(options: argparse.Namespace) -> int:
    facts = _facts(options.dir, options.limit)
    checks = runner.chosen(all_checks(facts), options.only)
    if options.list:
        for check in checks:
            print(f"{check.id:<36} {check.source}: {check.command}")
        return 0
    started = time.monotonic()
    with Progress() as progress, progress.task("Verify the cluster") as task:
        results = runner.run(checks, lambda result: setattr(task, "doing", result.check.id))
        seconds = time.monotonic() - started
        task.doing = report.summary(results, seconds)
    text = FORMS[options.form](results, seconds)
    if options.output:
        write_file(options.output, text.encode())
        print(f"falsework: {options.output} is written", file=sys.stderr)
    else:
        print(text, end="")
    return int(any(result.verdict.outcome is Outcome.FAIL for result in results))


def _facts(folder: Path, limit: float) -> Facts:
    view = view_of(folder)
    provider = provider_of(view.lab)
    commands = Commands(view, provider, time.monotonic() + limit)
    return Facts(view.site, view.lab, provider, commands, Snapshot(lab_client(view, _PATIENCE)))
