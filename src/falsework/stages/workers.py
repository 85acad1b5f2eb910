"""The workers: machines like the masters, only that the cluster itself gives them their config and lets them in."""

from __future__ import annotations

from collections.abc import Iterable

from falsework.checks.requests import Requests
from falsework.csr.decisions import Noted
from falsework.machines.provider import Power
from falsework.machines.retirement import is_retired
from falsework.site.model import Machine
from falsework.stages import machines, membership, node_removal
from falsework.stages.conditions import Condition
from falsework.stages.context import Context
from falsework.stages.control_plane import node_ready
from falsework.stages.joining import WhyNotLetIn, is_kept_out, registered
from falsework.stages.model import Stage


def kept_out(context: Context) -> Iterable[Noted]:
    """Who is not let in, by the rules the cluster's approver has: its own word is in its log alone."""
    requests = Requests(context.cluster.client, context.site, _no_bootstrap)
    return [entry for entry in requests.all() if is_kept_out(entry)]


def _no_bootstrap(path: str) -> bytes:
    raise FileNotFoundError(path)


def _conditions(context: Context) -> list[Condition]:
    workers = context.site.workers
    why_not_let_in = WhyNotLetIn(lambda: kept_out(context))
    return [
        *(registered(context, "workers", machine, why_not_let_in) for machine in workers),
        *(node_ready(context, machine) for machine in workers),
    ]


def _off(context: Context) -> list[Machine]:
    provider = machines.provider(context)
    return [
        machine for machine in context.site.workers if provider.state(machine.name).power in (Power.ABSENT, Power.OFF)
    ]


def _done(context: Context) -> bool:
    """One that has lost its power is a Ready node for a while yet."""
    if not is_retired(context.lab) or node_removal.leaving(context) or _off(context):
        return False
    if not all(condition.look().holds for condition in _conditions(context)):
        return False
    return membership.is_up_to_date(context)


def _run(context: Context) -> None:
    """Give power to those that have none, and wait until they are nodes that pods can run on."""
    workers = context.site.workers
    node_removal.finish(context)
    membership.bring_up_to_date(context)
    machines.switch_on(context, workers)
    context.wait_for(_conditions(context))
    machines.expect_no_longer(context, workers)


def _plan(context: Context) -> list[str]:
    off = _off(context)
    return [
        *(f"machine {name} is removed" for name in node_removal.leaving(context)),
        *(f"machine {machine.name}, booted over the network" for machine in off),
        *(f"wait: {machine.name} becomes a node and is Ready" for machine in context.site.workers),
    ]


STAGE = Stage(
    name="workers",
    title="Let the workers join",
    why="They ask the masters for their config: from here on the cluster grows without any help from outside.",
    needs=("pivot",),
    done=_done,
    plan=_plan,
    run=_run,
)
