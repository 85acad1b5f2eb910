"""The one place that knows what stands behind the machines' door."""

from __future__ import annotations

from falsework.errors import FalseworkError, UsageError
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines.nspawn import Nspawn
from falsework.machines.provider import Power, State
from falsework.site.model import Helper, Machine, Site
from falsework.site.records import everyone


def provider_of(lab: Lab) -> Nspawn:
    return Nspawn(lab, Journal(lab.journal))


def machine_named(site: Site, name: str) -> Machine | Helper:
    """A machine by its short name or its full one."""
    short = name.removesuffix(".").removesuffix(f".{site.domain}")
    for machine in everyone(site):
        if machine.name == short:
            return machine
    raise UsageError(
        f"there is no machine {name}",
        cause=f"the site has {', '.join(machine.name for machine in everyone(site))}",
        fix="name one of these",
    )


def require_power(machine: Machine | Helper, state: State) -> None:
    """Say what to do about a machine that is not on."""
    if state.power is Power.ABSENT:
        raise FalseworkError(f"{machine.name} is not made yet", fix="run `falsework up`")
    if state.power is Power.OFF:
        raise FalseworkError(
            f"{machine.name} is off",
            cause=state.doing or None,
            fix=f"run `falsework machine start {machine.name}`",
        )
