"""falsework node: workers come into the running cluster, and leave it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import UsageError
from falsework.lab.access import changing
from falsework.lab.folder import Lab
from falsework.machines.retirement import is_retired
from falsework.progress import Progress
from falsework.site.edit import new_worker_names
from falsework.site.model import Role, Site
from falsework.stages import assets, helper, network, node_removal, release, runner, site_change, workers
from falsework.stages.context import Context
from falsework.stages.events import EventLog
from falsework.stages.model import Stage

_FEWER = (assets.STAGE, helper.STAGE, workers.STAGE)
_MORE = (release.STAGE, assets.STAGE, network.STAGE, helper.STAGE, workers.STAGE)
"""What a machine less or more concerns."""
_TIMEOUT = 600.0


def register(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    adding = actions.add_parser(
        "add",
        help="add workers to the site and let them join the running cluster",
        description="Write workers into site.yaml and let them join the running cluster. After an interruption, the "
        "same command with the same names goes on, and so does `falsework up`.",
    )
    adding.add_argument("names", nargs="*", metavar="NAME")
    adding.add_argument("--count", type=int, metavar="N", help="add so many, called worker-N")
    removing = actions.add_parser(
        "remove",
        help="take a worker out of the cluster, with its machine",
        description="Take a worker out of the cluster: its pods go to others, then it is taken out of site.yaml and "
        "everything that knows it, and its machine is removed with its disk. May be run again after an interruption.",
    )
    removing.add_argument("name", metavar="NAME")
    removing.add_argument(
        "--timeout", type=float, default=_TIMEOUT, metavar="SECONDS", help="for its pods to go (default: %(default)s)"
    )
    removing.add_argument(
        "--force", action="store_true", help="even if pods or data are lost; pods that do not go in time go with it"
    )
    for action in (adding, removing):
        add_folder_option(action)


def run(options: argparse.Namespace) -> int:
    lab = Lab.of(options.dir)
    with Progress() as progress:
        if not is_retired(lab):
            raise UsageError(
                "there is no cluster yet that a worker could join or leave",
                fix="list the machines in site.yaml, then run `falsework up`",
            )
        with changing(lab, progress.say):
            site_change.finish(lab)
            site = site_in(options.dir)
            if options.action == "add":
                _add(lab, site, options)
                _bring_about(lab, options.dir, progress, _MORE)
            else:
                _remove(lab, site, options, progress)
                _bring_about(lab, options.dir, progress, _FEWER)
    return 0


def _add(lab: Lab, site: Site, options: argparse.Namespace) -> None:
    if bool(options.names) == (options.count is not None) or (options.count is not None and options.count < 1):
        raise UsageError("say which workers", fix="name them, or say how many with --count")
    if going := set(options.names).intersection(node_removal.noted(lab)):
        raise UsageError(
            f"{min(going)} is just being removed", fix=f"first run `falsework node remove {min(going)}` to its end"
        )
    names = options.names or new_worker_names(site, options.count)
    roles = {machine.name: machine.role for machine in site.machines}
    for name in names:
        if name == site.helper.name or roles.get(name, Role.WORKER) is not Role.WORKER:
            raise UsageError(f"{name} is a machine of this site, and not a worker", fix="use another name")
    if new := [name for name in dict.fromkeys(names) if name not in roles]:
        site_change.add_workers(lab, site, new)


def _remove(lab: Lab, site: Site, options: argparse.Namespace, progress: Progress) -> None:
    name = options.name.removesuffix(f".{site.domain}")
    machine = next((machine for machine in site.machines if machine.name == name), None)
    if machine is None:
        if name in node_removal.noted(lab):
            return
        raise UsageError(
            f"there is no worker {name}",
            cause=f"the site has {', '.join(machine.name for machine in site.workers) or 'none'}",
            fix="name one of these",
        )
    with closing(Context(lab, lambda: site, progress, EventLog(lab.events))) as context:
        node_removal.refuse(context, machine, force=options.force)
        with progress.task(f"Empty {name}") as context.task:
            node_removal.empty(context, machine, options.timeout, force=options.force)
    node_removal.note(lab, machine)
    site_change.remove_machine(lab, site, name)


def _bring_about(lab: Lab, folder: Path, progress: Progress, stages: Sequence[Stage]) -> None:
    """What the site's files say now."""
    site = site_in(folder)
    runner.run(Context(lab, lambda: site, progress, EventLog(lab.events)), stages)
