"""The bootstrap machine, and the temporary control plane it becomes by itself; the masters, which wait for it."""

from __future__ import annotations

from functools import partial

from falsework.checks.answers import Asker
from falsework.checks.bootstrap import control_plane_checks, machine_checks
from falsework.lab.folder import NETWORK
from falsework.machines.provider import Power
from falsework.machines.retirement import is_retired
from falsework.site.model import Machine, Role
from falsework.stages import machines
from falsework.stages.conditions import Condition
from falsework.stages.context import Context
from falsework.stages.model import Stage


def _first(context: Context) -> list[Machine]:
    """Who is waited for: the bootstrap, because the masters boot no further than to their question for a config until
    it answers. Once it is retired they do not need it."""
    return list(context.site.masters) if is_retired(context.lab) else [context.site.bootstrap]


def _machine_conditions(context: Context) -> list[Condition]:
    first, boot = _first(context), context.site.timeouts.boot
    conditions = [machines.booted(context, machine) for machine in first]
    for machine in first:
        checks = machine_checks(Asker(context.lab.netns_path(machine.name)))
        conditions += [machines.condition(machine, check, boot) for check in checks]
    return conditions


def _off(context: Context) -> list[Machine]:
    wanted = [machine for machine in context.standing_site.machines if machine.role is not Role.WORKER]
    provider = machines.provider(context)
    return [machine for machine in wanted if provider.state(machine.name).power in (Power.ABSENT, Power.OFF)]


def _machines_run(context: Context) -> bool:
    return not _off(context) and all(condition.look().holds for condition in _machine_conditions(context))


def _plan_machines(context: Context) -> list[str]:
    return [f"machine {machine.name}, booted over the network" for machine in _off(context)]


def _start_machines(context: Context) -> None:
    off, first = _off(context), _first(context)
    # Those everybody waits for have the disk and the processors to themselves while they are made.
    machines.switch_on(context, [machine for machine in off if machine in first])
    machines.switch_on(context, [machine for machine in off if machine not in first])
    context.wait_for([machines.booted(context, machine) for machine in first])
    machines.expect_no_longer(context, first)


def _control_plane_conditions(context: Context) -> list[Condition]:
    site = context.site
    asker = Asker(context.lab.netns_path(NETWORK))
    read = partial(machines.provider(context).read_file, site.bootstrap.name)
    checks = control_plane_checks(site, context.lab.site_folder, asker, read)
    return [machines.condition(site.bootstrap, check, site.timeouts.api) for check in checks]


def _is_up(context: Context) -> bool:
    """Its questions go to a machine that may be off."""
    if is_retired(context.lab):
        return True
    if machines.provider(context).state(context.site.bootstrap.name).power is not Power.RUNNING:
        return False
    return all(condition.look().holds for condition in _control_plane_conditions(context))


MACHINE = Stage(
    name="bootstrap-machine",
    title="Boot the bootstrap",
    why="One machine gets everything with it that a cluster needs to begin; all others ask it. The masters do so "
    "already.",
    needs=("helper",),
    done=_machines_run,
    plan=_plan_machines,
    run=_start_machines,
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
