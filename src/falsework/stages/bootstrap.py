"""The bootstrap machine, and the temporary control plane it becomes by itself."""

from __future__ import annotations

from functools import partial

from falsework.checks.answers import Asker
from falsework.checks.bootstrap import control_plane_checks, machine_checks
from falsework.lab.folder import NETWORK
from falsework.machines.provider import Power
from falsework.stages import machines
from falsework.stages.conditions import Condition
from falsework.stages.context import Context
from falsework.stages.model import Stage


def _machine_conditions(context: Context) -> list[Condition]:
    bootstrap, boot = context.site.bootstrap, context.site.timeouts.boot
    asker = Asker(context.lab.netns_path(bootstrap.name))
    checks = machine_checks(asker)
    return [
        machines.booted(context, bootstrap),
        *(machines.condition(bootstrap, check, boot) for check in checks),
    ]


def _plan_machine(context: Context) -> list[str]:
    return [f"machine {context.site.bootstrap.name}, booted over the network"]


def _start_machine(context: Context) -> None:
    bootstrap = context.site.bootstrap
    machines.switch_on(context, [bootstrap])
    context.wait_for([machines.booted(context, bootstrap)])
    machines.expect_no_longer(context, [bootstrap])


def _control_plane_conditions(context: Context) -> list[Condition]:
    site, provider = context.site, machines.provider(context)
    asker = Asker(context.lab.netns_path(NETWORK))
    read = partial(provider.read_file, site.bootstrap.name)
    checks = control_plane_checks(site, context.lab.site_folder, asker, read)
    return [machines.condition(site.bootstrap, check, site.timeouts.api) for check in checks]


def _is_up(context: Context) -> bool:
    """Its questions go to a machine that may be off."""
    if machines.provider(context).state(context.site.bootstrap.name).power is not Power.RUNNING:
        return False
    return all(condition.look().holds for condition in _control_plane_conditions(context))


MACHINE = Stage(
    name="bootstrap-machine",
    title="Boot the bootstrap",
    why="One machine gets everything with it that a cluster needs to begin; all others will ask it.",
    needs=("helper",),
    plan=_plan_machine,
    run=_start_machine,
    conditions=_machine_conditions,
)

CONTROL_PLANE = Stage(
    name="temporary-control-plane",
    title="Raise the falsework",
    why="A control plane of one, which only has to stand until the real one stands on its own.",
    needs=("bootstrap-machine",),
    done=_is_up,
    plan=lambda _: ["wait: the bootstrap starts etcd, the API server and the Machine Config Server by itself"],
    run=lambda _: None,
    conditions=_control_plane_conditions,
)
