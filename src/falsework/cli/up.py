"""falsework up: from wherever the lab stands to where it should."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from functools import partial
from pathlib import Path

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.lab.access import changing, looking_into
from falsework.lab.folder import Lab
from falsework.lab.marker import mark
from falsework.progress import Progress
from falsework.stages import runner
from falsework.stages.catalogue import STAGES
from falsework.stages.context import Context
from falsework.stages.events import Event, EventLog, read_events


def register(parser: argparse.ArgumentParser) -> None:
    width = max(len(stage.name) for stage in STAGES)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "Go through the stages below, in this order. What is done already is left as it is, so the same command goes\n"
        "on after an interruption, a kill or an error."
    )
    parser.epilog = "stages:\n" + "\n".join(f"  {stage.name:<{width}}  {stage.why}" for stage in STAGES)
    add_folder_option(parser)
    parser.add_argument("--until", choices=[stage.name for stage in STAGES], help="the last stage to go through")
    parser.add_argument("--dry-run", action="store_true", help="say what would be made; touch nothing")
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    lab = Lab.of(folder)
    stages = runner.up_to(STAGES, options.until)
    with Progress() as progress:
        if options.dry_run:
            with looking_into(lab):
                _show_plan(Context(lab, partial(site_in, folder), progress), options)
            return 0
        # A site that cannot be used is said before anything is touched.
        site = site_in(folder)
        with changing(lab, progress.say):
            mark(lab)
            events = EventLog(lab.events, _print_event if options.json else None)
            try:
                runner.run(Context(lab, lambda: site, progress, events), stages)
            except KeyboardInterrupt:
                progress.say(f"everything stays as it is; `falsework destroy --dir {folder}` would remove it")
                raise
    if options.json:
        return 0
    if stages == STAGES:
        _print_summary(Context(lab, lambda: site, progress))
    else:
        print(f"Done up to {stages[-1].name}. `falsework up --dir {folder}` goes on with {STAGES[len(stages)].name}.")
    return 0


def _print_summary(context: Context) -> None:
    from falsework.release.payload import load_payload
    from falsework.stages.summary import console_address, last_run, summary

    lab, version = context.lab, load_payload().version
    with closing(context):
        console = console_address(context)
    run_events = last_run(read_events(lab.events))
    print("\n".join(["", *summary(context.site, lab.site_folder, STAGES, run_events, version, console)]))


def _show_plan(context: Context, options: argparse.Namespace) -> None:
    for planned in runner.dry_run(context, runner.up_to(STAGES, options.until)):
        if options.json:
            print(json.dumps({"stage": planned.stage.name, "done": planned.done, "steps": planned.steps}))
            continue
        print(f"{planned.stage.name}: {'done' if planned.done else planned.stage.why}")
        for step in planned.steps:
            print(f"  {step}")


def _print_event(event: Event) -> None:
    print(json.dumps(event), flush=True)
