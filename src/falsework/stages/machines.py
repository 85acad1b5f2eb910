"""The site's machines as a lab has them: made, switched on and waited for. Several stages and commands need that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from falsework.checks.balancer import running_balancer
from falsework.checks.check import Check
from falsework.errors import FalseworkError
from falsework.helper import expectations
from falsework.helper.balancer import Balancer
from falsework.machines import share
from falsework.machines.nspawn import CONTAINERD, Nspawn
from falsework.machines.provider import Power, Spec
from falsework.machines.providers import provider_of
from falsework.machines.retirement import is_retired
from falsework.site.model import Helper, Machine
from falsework.stages import addresses
from falsework.stages.conditions import Condition, Seen
from falsework.stages.context import Context

AT_ONCE = 3
"""Machines being made: the disk and a waiting keeper leave time for another."""
FOLDERS = (CONTAINERD, "/var/lib/etcd", "/var/lib/kubelet")
"""On the host's disk: the first cannot be on an overlay, and the others would be slow there."""


def provider(context: Context) -> Nspawn:
    return provider_of(context.lab)


def balancer(context: Context) -> Balancer:
    return running_balancer(provider(context), context.site.helper.name)


def make(context: Context, machine: Machine) -> None:
    site = context.site
    spec = Spec(machine.name, site.fqdn(machine), machine.mac, machine.cpus, machine.memory_mib, FOLDERS)
    provider(context).create(spec, context.release.os_root, context.release.seed_images)


def switch_on(context: Context, machines: Sequence[Machine]) -> None:
    """Make what is not made yet, let the boot server expect them, and give them power: all boot at once."""
    if is_retired(context.lab) and context.site.bootstrap in machines:
        raise FalseworkError(
            f"{context.site.bootstrap.name} is retired: the cluster stands without it",
            cause="made again, it would begin a second etcd beside the masters'",
            fix="for a new cluster run `falsework destroy`, then `falsework up`",
        )
    wanted = [machine for machine in machines if provider(context).state(machine.name).power is not Power.RUNNING]
    addresses.make_free(context.lab, context.site.helper, wanted)
    expect(context, wanted)
    share.lab_groups(context.lab, context.journal)

    def one(machine: Machine) -> None:
        make(context, machine)
        provider(context).start(machine.name)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, wanted))


def expect(context: Context, machines: Iterable[Machine]) -> None:
    """From now on, and no longer than a boot may be without progress beyond its usual end."""
    now = time.time()
    stretch = expectations.Stretch(now, now + 4 * context.site.timeouts.boot)
    _change(context, lambda known: expectations.expecting(known, [machine.name for machine in machines], stretch))


def expect_no_longer(context: Context, machines: Iterable[Machine]) -> None:
    expect_no_longer_named(context, [machine.name for machine in machines])


def expect_no_longer_named(context: Context, names: Sequence[str]) -> None:
    _change(context, lambda known: expectations.no_longer(known, names))


def _change(context: Context, change: Callable[[expectations.Expected], expectations.Expected]) -> None:
    helper, machines = context.site.helper.name, provider(context)
    try:
        known = expectations.parse(machines.read_file(helper, expectations.PATH))
    except (FileNotFoundError, ValueError):
        # What cannot be read is not believed by the boot server either.
        known = {}
    wanted = change(known)
    if wanted != known:
        machines.write_file(helper, expectations.PATH, expectations.written(wanted))


def booted(context: Context, machine: Machine | Helper) -> Condition:
    machines, name = provider(context), machine.name

    def probe() -> Seen:
        state = machines.state(name)
        step = state.doing.partition(":")[0]
        console = f"falsework machine console {name}"
        return Seen(state.power is Power.RUNNING, f"{state.power}, {step}", state.doing, console)

    return Condition(
        name=f"machine/{name}",
        waits_for=f"{name} is up",
        probe=probe,
        patience=context.site.timeouts.boot,
        cause="a server it boots from does not answer it, or it could not use what it got",
        fix=f"see `falsework machine console {name}` and `falsework ledger --machine {name}`",
    )


def condition(machine: Machine | Helper, check: Check, patience: float) -> Condition:
    """A check of something that runs on a machine, as what a stage waits for."""
    name = machine.name

    def probe() -> Seen:
        wrong = check.fault()
        return Seen(not wrong, "not yet" if wrong else "yes", wrong, f"falsework exec {name} -- systemctl status")

    return Condition(
        name=f"{name}/{check.name}",
        waits_for=f"{name} {check.sentence}",
        probe=probe,
        patience=patience,
        cause=f"{check.unit} on {name} has not come that far",
        fix=f"see `falsework exec {name} -- journalctl -u {check.unit}`",
    )
