"""The third stage: certificates, kubeconfigs, manifests and Ignition configs of the site, fresh enough to boot from."""

from __future__ import annotations

from falsework.assets.graph import STATE_FILE, Report
from falsework.site.problems import counted
from falsework.stages.context import Context
from falsework.stages.model import Stage


def _preview(context: Context) -> Report:
    from falsework.assets.catalogue import preview

    return preview(context.site, context.lab.site_folder)


def _done(context: Context) -> bool:
    """Also not done when something is about to expire: no machine may boot from that."""
    if not (context.lab.site_folder / STATE_FILE).exists():
        return False
    report = _preview(context)
    return not (report.made or report.written or report.removed)


def _plan(context: Context) -> list[str]:
    report, folder = _preview(context), context.lab.site_folder
    again = (f"make {name} again: {why}" for name, why in report.made.items() if why != "new")
    new = sum(why == "new" for why in report.made.values())
    return [
        *([f"make {counted(new, 'new asset')} in {folder}"] if new else []),
        *again,
        *([f"write {counted(len(report.written), 'file')} in {folder}"] if report.written else []),
        *(f"remove {folder / path}, which nothing needs any more" for path in report.removed),
        *(f"warning: {warning}" for warning in report.warnings),
    ]


def _run(context: Context) -> None:
    from falsework.assets.catalogue import create

    report = create(context.site, context.lab.site_folder, when_busy=context.say)
    for warning in report.warnings:
        context.say(f"warning: {warning}")
    context.doing(f"{counted(len(report.written), 'file')} written in {context.lab.site_folder}")


STAGE = Stage(
    name="assets",
    title="Make the assets",
    why="Every machine's identity is made before the machine: keys, certificates, and the config it will boot from.",
    needs=("preflight",),
    done=_done,
    plan=_plan,
    run=_run,
)
