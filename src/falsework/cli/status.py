"""falsework status: how far a lab is, and what it is waiting for."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from pathlib import Path

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.lab.access import looking_into
from falsework.lab.folder import Lab
from falsework.progress import Progress
from falsework.stages.catalogue import STAGES
from falsework.stages.context import Context
from falsework.stages.status import Status, all_done, status_of

INTERVAL = 0.5
_REQUESTS_SHOWN = 5


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show the stages of a lab, what it is waiting for and its machines. Touches nothing. "
        "Exit code 0 when every stage is done, 1 when not."
    )
    add_folder_option(parser)
    parser.add_argument("--watch", action="store_true", help="go on until all is done, showing what changes")
    parser.add_argument("--json", action="store_true", help="print JSON; with --watch a line for every change")


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    lab = Lab.of(folder)
    site = site_in(folder)
    shown: list[str] = []
    with looking_into(lab):
        while True:
            with closing(Context(lab, lambda: site, Progress())) as context:
                status = status_of(context, STAGES)
            shown = _show(_lines(status, options), shown, watching=options.watch)
            if all_done(status) or not options.watch:
                return 0 if all_done(status) else 1
            time.sleep(INTERVAL)


def _lines(status: Status, options: argparse.Namespace) -> list[str]:
    if options.json:
        return [json.dumps(status)] if options.watch else json.dumps(status, indent=1).splitlines()
    lab = status["lab"]
    lines = [f"{lab['cluster']} ({lab['id']}), site folder {lab['siteFolder']}"]
    if lab["changedBy"]:
        lines.append(f"{lab['changedBy']} is changing it")
    width = max(12, *(len(row["name"]) for row in (*status["stages"], *status["machines"])))
    for stage in status["stages"]:
        seconds = f"{stage['seconds']:7.1f} s" if stage["seconds"] is not None else " " * 9
        lines.append(f"  {stage['name']:<{width}} {stage['state']:<12} {seconds}  {stage['title']}")
        if stage["error"]:
            lines.append(f"      {stage['error']['what']}")
            if stage["error"]["fix"]:
                lines.append(f"      next: {stage['error']['fix']}")
    for condition in status["conditions"]:
        if not condition["holds"]:
            error = f"; last error: {condition['error']}" if condition["error"] else ""
            lines.append(f"  waiting for {condition['waitsFor']}: {condition['state']}{error}")
    lines += [
        f"  {machine['name']:<{width}} {machine['power']:<12} {machine['address']:>15}  {machine['doing']}"
        for machine in status["machines"]
    ]
    requests = status["certificateRequests"]
    for request in requests[:_REQUESTS_SHOWN]:
        who = request["machine"] or request["requester"]
        lines.append(f"  request {request['name']} ({who}) is not approved: {request['message']}")
    if len(requests) > _REQUESTS_SHOWN:
        lines.append(f"  and {len(requests) - _REQUESTS_SHOWN} more: falsework csr list")
    return lines


def _show(lines: list[str], before: list[str], *, watching: bool) -> list[str]:
    """All of it the first time; then, at a terminal, drawn anew in its place, and elsewhere only what has changed."""
    if lines == before:
        return lines
    if watching and before and sys.stdout.isatty():
        print(f"\x1b[{len(before)}A\x1b[J", end="")
    elif before:
        known = set(before)
        print("\n".join(line for line in lines if line not in known), flush=True)
        return lines
    print("\n".join(lines), flush=True)
    return lines
