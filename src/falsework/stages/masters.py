"""The masters become nodes: they fetch their config, ask for certificates and are let in, all by themselves."""

from __future__ import annotations

from functools import partial

from falsework.checks.requests import told_by_approver
from falsework.stages import machines
from falsework.stages.conditions import Condition
from falsework.stages.context import Context
from falsework.stages.joining import WhyNotLetIn, registered
from falsework.stages.model import Stage


def _conditions(context: Context) -> list[Condition]:
    read = partial(machines.provider(context).read_file, context.site.bootstrap.name)
    why_not_let_in = WhyNotLetIn(lambda: told_by_approver(read).values())
    return [registered(context, "masters", machine, why_not_let_in) for machine in context.site.masters]


def _run(context: Context) -> None:
    context.wait_for(_conditions(context))
    machines.expect_no_longer(context, context.site.masters)


STAGE = Stage(
    name="masters",
    title="Let the masters join",
    why="Each fetches its config and asks for two certificates: one to speak to the API, one to be spoken to.",
    needs=("temporary-control-plane",),
    plan=lambda context: [f"wait: {machine.name} becomes a node" for machine in context.site.masters],
    run=_run,
    conditions=_conditions,
)
