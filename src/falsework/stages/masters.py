"""The masters become nodes: they fetch their config, ask for certificates and are let in, all by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from falsework.checks import control_plane
from falsework.checks.requests import told_by_approver
from falsework.machines.provider import Power
from falsework.site.model import Machine
from falsework.stages import machines
from falsework.stages.conditions import Condition, Seen
from falsework.stages.context import Context
from falsework.stages.model import Stage

_SELDOM = 2.0
"""Seconds between two looks at what the approver says: each is a look into the bootstrap machine."""


def _conditions(context: Context) -> list[Condition]:
    why_not_let_in = _Approver(context)
    return [_registered(context, machine, why_not_let_in) for machine in context.site.masters]


def _registered(context: Context, machine: Machine, why_not_let_in: Callable[[str], str]) -> Condition:
    name, fqdn = machine.name, context.site.fqdn(machine)

    def probe() -> Seen:
        if control_plane.node(context.cluster, fqdn):
            return Seen(True, "registered")
        console = f"falsework machine console {name}"
        state = machines.provider(context).state(name)
        if state.power is not Power.RUNNING:
            return Seen(False, f"{state.power}, {state.doing.partition(':')[0]}", state.doing, console)
        return Seen(False, "up, not a node yet", why_not_let_in(fqdn), f"falsework csr list, {console}")

    return Condition(
        name=f"masters/{name}",
        waits_for=f"{name} is a node",
        probe=probe,
        patience=context.site.timeouts.join,
        cause="it cannot fetch its config, cannot reach the API, or its certificate request is not approved",
        fix=f"see `falsework csr list`, `falsework machine console {name}` and `falsework ledger --machine {name}`",
    )


class _Approver:
    """What the one who lets machines in says of those it does not let in."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next = 0.0
        self._said: dict[str, str] = {}

    def __call__(self, fqdn: str) -> str:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SELDOM
            read = partial(machines.provider(self._context).read_file, self._context.site.bootstrap.name)
            entries = told_by_approver(read).values()
            self._said = {entry.machine: entry.message for entry in entries if entry.decision in ("wait", "deny")}
        return self._said.get(fqdn, "no certificate request of it is waiting")


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
