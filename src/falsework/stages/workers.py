"""The workers: machines like the masters, only that the cluster itself gives them their config and lets them in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from falsework.checks.requests import Requests
from falsework.csr.decisions import Noted
from falsework.machines.provider import Power
from falsework.site.model import Machine
from falsework.stages import machines
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


def conditions_of(context: Context, workers: Sequence[Machine]) -> list[Condition]:
    why_not_let_in = WhyNotLetIn(lambda: kept_out(context))
    return [
        *(registered(context, "workers", machine, why_not_let_in) for machine in workers),
        *(node_ready(context, machine) for machine in workers),
    ]


def _conditions(context: Context) -> list[Condition]:
    return conditions_of(context, context.site.workers)


def _off(context: Context) -> list[Machine]:
    provider = machines.provider(context)
    return [
        machine for machine in context.site.workers if provider.state(machine.name).power in (Power.ABSENT, Power.OFF)
    ]


def _done(context: Context) -> bool:
    """One that has lost its power is a Ready node for a while yet."""
    return not _off(context) and all(condition.look().holds for condition in _conditions(context))


def let_join(context: Context, workers: Sequence[Machine]) -> None:
    """Give power to those that have none, and wait until they are nodes that pods can run on."""
    machines.switch_on(context, workers)
    context.wait_for(conditions_of(context, workers))
    machines.expect_no_longer(context, workers)


def _plan(context: Context) -> list[str]:
    off = _off(context)
    return [
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
    run=lambda context: let_join(context, context.site.workers),
)
