"""falsework conformance: Kubernetes' own conformance tests, against the lab's cluster."""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

from falsework.cli.lab_view import view_of
from falsework.cli.site_folder import add_folder_option
from falsework.conformance.build import build_suite, build_tests, pin_suite
from falsework.conformance.registry import store_of
from falsework.conformance.report import Case, described, failed
from falsework.conformance.run import Programs, Runner, Selection, Tally, listed, phases
from falsework.errors import UsageError
from falsework.helper.registry_store import add_to_store
from falsework.machines.view import View
from falsework.progress import Progress, Task
from falsework.release.cache import Cache, default_root


def register(parser: argparse.ArgumentParser) -> None:
    add_folder_option(parser)
    parser.add_argument("--focus", default="", metavar="RE", help="only tests whose name this expression finds")
    parser.add_argument("--skip", default="", metavar="RE", help="without those whose name this expression finds")
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="tests at a time (default: 1)")
    parser.add_argument("--junit", type=Path, metavar="FOLDER", help="where to write the reports and logs")
    parser.add_argument("--list", action="store_true", help="only print the names of the tests; needs no lab")
    parser.add_argument(
        "--pin", action="store_true", help="for Falsework's developers: pin what the tests are built from anew"
    )


def run(options: argparse.Namespace) -> int:
    if options.parallel < 1:
        raise UsageError("--parallel is a number of tests at a time", fix="give 1 or more")
    selection = Selection.checked(options.focus, options.skip)
    with Progress() as progress:
        cache = Cache(default_root(), progress.say)
        if options.pin:
            pin_suite(cache, progress)
            return 0
        if options.list:
            return _list(cache, progress, selection)
        cases = _run(options, selection, cache, progress)
    print("\n".join(described(cases)))
    return 1 if failed(cases) or not cases else 0


def _list(cache: Cache, progress: Progress, selection: Selection) -> int:
    tests = build_tests(cache, progress)
    with tempfile.TemporaryDirectory() as folder:
        names = listed(tests.install(Path(folder)), selection)
    print("\n".join(names))
    return 0 if names else 1


def _run(options: argparse.Namespace, selection: Selection, cache: Cache, progress: Progress) -> list[Case]:
    view: View = view_of(options.dir)
    view.require()
    kubectl = view.program("kubectl")
    suite = build_suite(cache, progress)
    add_to_store(cache, store_of(view), suite.images)
    folder = view.lab.root / "conformance"
    programs = Programs(suite.tests.install(folder), suite.runner.install(folder), kubectl)
    results: Path = (options.junit or folder / "results").resolve()
    results.mkdir(parents=True, exist_ok=True)
    runner = Runner(view, programs, results)
    cases: list[Case] = []
    for phase in phases(options.parallel):
        with progress.task(f"tests ({phase.name})") as task:
            cases += runner.run(phase, selection, partial(_tell, task))
    progress.say(f"the reports and logs are in {results}")
    return cases


def _tell(task: Task, tally: Tally) -> None:
    task.doing = str(tally)
