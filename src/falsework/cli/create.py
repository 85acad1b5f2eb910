"""falsework create: make the assets of a site."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from falsework.assets.catalogue import Step, create
from falsework.assets.graph import Report
from falsework.assets.manifests import SCHEDULER
from falsework.cli.site_folder import add_folder_option, site_in

_LINES = 12


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", choices=[str(step) for step in Step], help="how far to go")
    parser.add_argument(
        "--complete",
        action="store_true",
        help="also make a config for every machine that needs no Machine Config Server",
    )
    add_folder_option(parser)


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    site = site_in(folder)
    report = create(site, folder, Step(options.step), complete=options.complete, when_busy=_say)
    if site.compute_replicas == 0 and SCHEDULER in report.written:
        _say(f"warning: there are no compute replicas, so {SCHEDULER} makes the masters schedulable")
    for warning in report.warnings:
        _say(f"warning: {warning}")
    _print_summary(report, folder)
    if options.step != Step.MANIFESTS:
        _print_sizes(folder)
    return 0


def _print_summary(report: Report, folder: Path) -> None:
    again = [f"  {name}: {why}" for name, why in report.made.items() if why != "new"]
    if again:
        print("made again:")
        _print_some(again)
    if report.edited:
        print(f"used as you left them: {_some(report.edited)}")
    if report.removed:
        print(f"removed, because nothing needs them any more: {_some(report.removed)}")
    print(f"{len(report.written)} files written in {folder}" if report.written else f"{folder} is up to date")


def _print_sizes(folder: Path) -> None:
    for pattern in ("*.ign", "rendered/*.ign", "machines/*.ign", "complete/*.ign"):
        sizes = {path.relative_to(folder): path.stat().st_size for path in sorted(folder.glob(pattern))}
        if len(sizes) > _LINES:
            print(f"  {pattern:<28} {sum(sizes.values()):>9} bytes in {len(sizes)} files")
        else:
            for path, size in sizes.items():
                print(f"  {path!s:<28} {size:>9} bytes")


def _print_some(lines: list[str]) -> None:
    for line in lines[:_LINES]:
        print(line)
    if len(lines) > _LINES:
        print(f"  … and {len(lines) - _LINES} more")


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _LINES} more" if len(paths) > _LINES else ""
    return ", ".join(paths[:_LINES]) + more


def _say(line: str) -> None:
    print(f"falsework: {line}", file=sys.stderr)
