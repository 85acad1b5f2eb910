"""falsework destroy: removes what was made for a lab, and nothing else."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import UsageError
from falsework.lab.access import changing, looking_into
from falsework.lab.folder import Lab
from falsework.stages.destroy import destroy, standing


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Remove everything Falsework made for a lab on this host: machines, networks, settings, the lab's folder. "
        "May be run again after an interruption. The site's folder and its assets stay, unless --assets is given; "
        "the release in the cache is shared by all labs and stays. With the word `bootstrap` only the bootstrap "
        "machine goes, which `falsework up` does by itself as soon as nobody needs it."
    )
    parser.add_argument("part", nargs="?", choices=("bootstrap",), help="only this machine, not the lab")
    add_folder_option(parser)
    parser.add_argument("--assets", action="store_true", help="also remove the assets, except files a person changed")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--force", action="store_true", help="even a bootstrap that the cluster still needs")


def run(options: argparse.Namespace) -> int:
    folder: Path = options.dir
    lab = Lab.of(folder)
    if options.part:
        return _destroy_bootstrap(folder, lab, force=options.force)
    if not (options.yes or sys.stdin.isatty()):
        raise UsageError("destroy asks before it removes anything, and there is nobody to ask", fix="add --yes")
    there = lab.root.exists() or lab.lock.exists()
    if not there:
        print(f"there is no lab of {lab.site_folder} on this host")
    if not (there or options.assets):
        return 0
    if not (options.yes or _agreed(lab, options.assets)):
        print("nothing was removed")
        return 0
    if there:
        with changing(lab, _say):
            removed = destroy(lab, _say)
        print(f"lab of {lab.site_folder}: removed {removed}")
    if options.assets:
        _remove_assets(folder)
    return 0


def _destroy_bootstrap(folder: Path, lab: Lab, *, force: bool) -> int:
    """Asks nobody: either nobody needs it, or --force has said so."""
    from falsework.machines.retirement import is_retired
    from falsework.progress import Progress
    from falsework.stages.context import Context
    from falsework.stages.guards import before_bootstrap_goes
    from falsework.stages.pivot import retire

    site = site_in(folder)
    with looking_into(lab), closing(Context(lab, lambda: site, Progress())) as context:
        if not lab.machine(site.bootstrap.name).exists() and not is_retired(lab):
            print(f"there is no machine {site.bootstrap.name} on this host")
            return 0
        # Before waiting for whoever changes the lab: a refusal comes at once.
        before_bootstrap_goes(context, "falsework destroy bootstrap", force=force, say=_say, with_disk=True)
        with changing(lab, _say):
            retire(context)
    print(f"{site.bootstrap.name} is retired")
    return 0


def _agreed(lab: Lab, assets: bool) -> bool:
    print("this would be removed:")
    with looking_into(lab):
        for thing in standing(lab):
            print(f"  {thing.kind} {thing.name}")
    if lab.root.is_dir():
        print(f"  {lab.root} with everything in it")
    if assets:
        print(f"  the assets Falsework made in {lab.site_folder}, keys and certificates too")
    try:
        return input("Remove it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


def _remove_assets(folder: Path) -> None:
    from falsework.assets.graph import remove_made

    removed, kept = remove_made(folder, _say)
    print(f"{len(removed)} assets removed from {folder}")
    if kept:
        print(f"kept, because they were changed by hand: {', '.join(kept)}")


def _say(line: str) -> None:
    print(f"falsework: {line}", file=sys.stderr)
