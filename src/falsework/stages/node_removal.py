"""A worker leaves the cluster. First its pods, and nothing is lost if it stays at that; then it is noted as leaving and
taken out of the site's files; and then there is no way back, only the end: whoever finds the note finishes it."""

from __future__ import annotations

import json
from pathlib import Path

from falsework.assets.join import USER_PREFIX
from falsework.csr.rules import NODE_PREFIX
from falsework.errors import FalseworkError, UsageError
from falsework.files import write_lasting_file
from falsework.kube.client import ApiError, Object
from falsework.kube.cluster import is_true
from falsework.kube.drain import Drain, cordon, losses
from falsework.kube.resources import CSRS, NODES, SCHEDULERS
from falsework.lab.folder import Lab
from falsework.lab.journal import Thing
from falsework.machines import network, nspawn
from falsework.node_roles.assigner import is_schedulable
from falsework.site.model import Machine, Role
from falsework.stages import addresses, machines, membership
from falsework.stages.context import Context


def _notes(lab: Lab) -> Path:
    return lab.root / "leaving"


def note(lab: Lab, machine: Machine) -> None:
    """From here on it is taken away as soon as the site has it no more. Then nobody else knows its address."""
    _notes(lab).mkdir(mode=0o700, exist_ok=True)
    content = json.dumps({"mac": machine.mac, "address": str(machine.address)})
    write_lasting_file(_notes(lab) / machine.name, content.encode(), 0o600)


def noted(lab: Lab) -> list[str]:
    return sorted(path.name for path in _notes(lab).glob("*"))


def leaving(context: Context) -> list[str]:
    """One that is noted and still in the site was not given up: its removal ended before that."""
    present = {machine.name for machine in context.site.machines}
    return [name for name in noted(context.lab) if name not in present]


def refuse(context: Context, machine: Machine, *, force: bool) -> None:
    """Say why a machine cannot leave, or not without loss."""
    site, node = context.site, context.site.fqdn(machine)
    if machine.role is not Role.WORKER:
        raise UsageError(
            f"{machine.name} is a {machine.role}, and only workers can be removed",
            cause="with a master goes a member of etcd, and with the second one the cluster"
            if machine.role is Role.MASTER
            else "it is taken away by `falsework up` as soon as nobody needs it",
        )
    if force:
        return
    lost = losses(context.cluster.client, node)
    if site.workers == (machine,) and not _masters_schedulable(context):
        lost.append("it is the last worker, and on masters no pods of users run")
    if lost:
        raise FalseworkError(
            f"{machine.name} cannot be removed without loss",
            cause="; ".join(lost),
            fix=f"see to it first, or run `falsework node remove {machine.name} --force`",
        )


def _masters_schedulable(context: Context) -> bool:
    scheduler = context.cluster.one(SCHEDULERS, "cluster")
    return scheduler is not None and is_schedulable(scheduler)


def empty(context: Context, machine: Machine, timeout: float, *, force: bool) -> None:
    """Nobody new comes, then everybody goes: first connections from outside, then pods. If they do not go, connections
    may come again; that no new pods come is left as it is."""
    node, client = context.site.fqdn(machine), context.cluster.client
    found = _node(context, node)
    if found is None:
        return
    context.doing(f"no new pods for {machine.name}")
    cordon(client, node)
    _drain_connections(context, machine.name)
    if not is_true(found, "Ready"):
        # Nobody is there who could end its pods; they are taken for ended when the Node is gone.
        context.say(f"{machine.name} is not Ready: its pods are not waited for")
        return
    try:
        Drain(client, node, context.doing, timeout).run()
    except FalseworkError as error:
        if not force:
            _take_connections(context, machine.name)
            raise
        context.say(f"--force: {error.cause}")


def _node(context: Context, node: str) -> Object | None:
    try:
        return context.cluster.client.get(NODES, node)
    except ApiError as error:
        if not error.is_missing:
            raise
        return None


def _has_place(context: Context, name: str) -> bool:
    ours = context.site.helper.address in (context.site.api_vip, context.site.ingress_vip)
    return ours and any(server.name == name for server in machines.balancer(context).state())


def _drain_connections(context: Context, name: str) -> None:
    if _has_place(context, name):
        machines.balancer(context).drain(name)


def _take_connections(context: Context, name: str) -> None:
    if _has_place(context, name):
        machines.balancer(context).ready(name)


def finish(context: Context) -> None:
    """For all that are leaving. Killed half-way and called again, it goes on."""
    gone = leaving(context)
    for name in gone:
        _take_away(context, name)
    for name in noted(context.lab):
        # Of one that is in the site again, the note is no longer true.
        (_notes(context.lab) / name).unlink()


def _take_away(context: Context, name: str) -> None:
    """It may not come back, then it has no power, and only then it is no node: a kubelet makes its Node again."""
    node = f"{name}.{context.site.domain}"
    context.doing(f"{name} may no longer join")
    membership.retire(context, node)
    context.doing(f"{name} is powered off and removed")
    machines.provider(context).destroy(name)
    context.journal.removed(Thing(nspawn.KIND, name))
    cable = Thing(network.KIND, context.lab.netns(name))
    network.remove_netns(cable)
    context.journal.removed(cable)
    _forget(context, node)
    lease = json.loads((_notes(context.lab) / name).read_bytes())
    addresses.give_back(context.lab, context.site.helper, lease["mac"], lease["address"])
    machines.expect_no_longer_named(context, [name])
    context.say(f"{name} is gone")


def _forget(context: Context, node: str) -> None:
    client = context.cluster.client
    requests = [
        str(item["metadata"]["name"])
        for item in client.list(CSRS).items
        if item["spec"].get("username") in (USER_PREFIX + node, NODE_PREFIX + node)
    ]
    for resource, names in ((NODES, [node]), (CSRS, requests)):
        for name in names:
            try:
                client.delete(resource, name)
            except ApiError as error:
                if not error.is_missing:
                    raise
