"""A machine becomes a node: it boots, fetches its config and asks for certificates, and somebody lets it in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from falsework.checks import control_plane
from falsework.csr.decisions import Noted
from falsework.machines.provider import Power
from falsework.site.model import Machine
from falsework.stages import machines
from falsework.stages.conditions import Condition, Seen
from falsework.stages.context import Context

_SELDOM = 2.0
"""Seconds between two looks at what is said of the requests: each is a question of its own."""


class WhyNotLetIn:
    """What is said of the machines whose certificate requests are not approved."""

    def __init__(self, look: Callable[[], Iterable[Noted]]) -> None:
        self._look = look
        self._next = 0.0
        self._said: dict[str, str] = {}

    def __call__(self, fqdn: str) -> str:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SELDOM
            self._said = {entry.machine: entry.message for entry in self._look() if is_kept_out(entry)}
        return self._said.get(fqdn, "no certificate request of it is waiting")


def is_kept_out(entry: Noted) -> bool:
    return entry.decision in ("wait", "deny")


def registered(context: Context, group: str, machine: Machine, why_not_let_in: Callable[[str], str]) -> Condition:
    """`group` is what the condition's name begins with."""
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
        name=f"{group}/{name}",
        waits_for=f"{name} is a node",
        probe=probe,
        patience=context.site.timeouts.join,
        cause="it cannot fetch its config, cannot reach the API, or its certificate request is not approved",
        fix=f"see `falsework csr list`, `falsework machine console {name}` and `falsework ledger --machine {name}`",
    )
