"""machine-config-operator: roles of Nodes, rendered configs, and how far each pool is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from falsework.csr.knowledge import machines_in
from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Object, WatchEvent
from falsework.kube.resources import (
    CONFIG_MAPS,
    DAEMON_SETS,
    MACHINE_CONFIG_POOLS,
    MACHINE_CONFIGS,
    MACHINE_CONFIGURATIONS,
    NODES,
    SCHEDULERS,
)
from falsework.node_roles.assigner import assign, is_schedulable
from falsework.operators.machine_config import names
from falsework.operators.machine_config.pool_status import new_status, with_render_failure
from falsework.operators.machine_config.render import rendered_for, with_origin
from falsework.operators.machine_config.selection import pool_of
from falsework.operators.machine_config.served import fetches_in
from falsework.operators.runtime.conditions import Condition, condition, now, status_of
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program
from falsework.site.model import Role

NAME = "machine-config-operator"
PORT = 9105
SERVER = "machine-config-server"


def main(words: Sequence[str]) -> int:
    return operator_main(NAME, names.NAMESPACE, words, build, port=PORT, resource=MACHINE_CONFIGURATIONS)


def build(program: Program) -> None:
    NodeRoles(program).add()
    Pools(program).add()
    ServerReport(program).add()


def named(event: WatchEvent) -> str:
    return str(event.object["metadata"]["name"])


def remembered(node: Object) -> Object:
    """Of a Node all but what it has in images and attached: they are most of it, and change often."""
    status = node.get("status") or {}
    return {
        "metadata": node["metadata"],
        "spec": node.get("spec"),
        "status": {"conditions": status.get("conditions")},
    }


class NodeRoles:
    """The bootstrap's approver does the same for the first Nodes; this one stays."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._nodes = program.follow(NODES, keep=remembered)
        self._schedulers = program.follow(SCHEDULERS)
        self._inventory = program.follow(
            CONFIG_MAPS, names.INVENTORY_NAMESPACE, fields=f"metadata.name={names.INVENTORY}"
        )
        self._served = program.follow(CONFIG_MAPS, names.NAMESPACE, fields=f"metadata.name={names.SERVED}")

    def add(self) -> None:
        # A change of what all depend on is looked at node by node: "" stands for all of them.
        wakes = [(self._nodes, named), *((each, always) for each in (self._schedulers, self._inventory, self._served))]
        self._program.add(Controller("NodeRoleController", self._sync, wakes, all_keys=self._names))

    def _names(self) -> list[str]:
        return [str(node["metadata"]["name"]) for node in self._nodes.objects()]

    def _sync(self, key: str) -> None:
        roles = self._roles()
        scheduler = self._schedulers.get("cluster")
        schedulable = None if scheduler is None else is_schedulable(scheduler)
        fetches = fetches_in(self._served.get(names.SERVED, names.NAMESPACE))
        for name in [key] if key else self._names():
            node = self._nodes.get(name)
            if node is not None:
                done = assign(
                    self._program.client,
                    node,
                    roles,
                    schedulable,
                    lambda machine: fetches[machine].config if machine in fetches else None,
                )
                if done:
                    self._program.events.normal("NodeRole", done)

    def _roles(self) -> dict[str, Role]:
        body = self._inventory.get(names.INVENTORY, names.INVENTORY_NAMESPACE)
        inventory = str((body or {}).get("data", {}).get(names.INVENTORY_KEY, "[]"))
        return {name: machine.role for name, machine in machines_in(inventory.encode()).items()}


class Pools:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._pools = program.follow(MACHINE_CONFIG_POOLS)
        self._configs = program.follow(MACHINE_CONFIGS)
        self._nodes = program.follow(NODES, keep=remembered)

    def add(self) -> None:
        add = self._program.add
        add(Controller("RenderController", self._render_all, ((self._pools, always), (self._configs, always))))
        wakes = ((self._pools, always), (self._nodes, always))
        add(Controller("MachineConfigPoolController", self._report_all, wakes))

    def _render_all(self, _: str) -> None:
        for pool in self._pools.objects():
            try:
                self._render(pool)
                failure = ""
            except ApiError:
                raise
            except FalseworkError as error:
                failure = error.one_line
            self._write_status(pool, with_render_failure(pool.get("status") or {}, failure, now()))

    def _render(self, pool: Object) -> None:
        """First the config, then who is to have it: a pool never names what is not there."""
        client, name = self._program.client, str(pool["metadata"]["name"])
        rendered = rendered_for(pool, self._configs.objects())
        if self._configs.get(rendered.name) is None:
            try:
                client.create(MACHINE_CONFIGS, with_origin(rendered, pool, self._program.version))
                self._program.events.normal("RenderedConfigGenerated", f"{rendered.name} was made for the pool {name}")
            except ApiError as error:
                if not error.is_conflict:
                    raise
        wanted = rendered.pool["spec"]["configuration"]
        if ((pool.get("spec") or {}).get("configuration") or {}) != wanted:
            client.patch(MACHINE_CONFIG_POOLS, name, {"spec": {"configuration": wanted}})

    def _report_all(self, _: str) -> None:
        pools, nodes = self._pools.objects(), self._nodes.objects()
        members: dict[str | None, list[Object]] = {}
        for node in nodes:
            members.setdefault(pool_of(node, pools), []).append(node)
        reported = [self._report(pool, members.get(str(pool["metadata"]["name"]), [])) for pool in pools]
        assert self._program.status is not None
        self._program.status.set(*pools_conditions(reported))

    def _report(self, pool: Object, nodes: list[Object]) -> Object:
        status = new_status(pool, nodes, now())
        self._write_status(pool, status)
        return {**pool, "status": status}

    def _write_status(self, pool: Object, status: Object) -> None:
        if status == pool.get("status"):
            return
        try:
            self._program.client.replace(MACHINE_CONFIG_POOLS, {**pool, "status": status}, "status")
        except ApiError as error:
            # Changed or gone meanwhile: the watch brings it, and it is looked at again.
            if not error.is_conflict and not error.is_missing:
                raise


def pools_conditions(pools: Iterable[Object]) -> list[Condition]:
    """What all pools together say of the operator."""
    known = {str(pool["metadata"]["name"]): pool for pool in pools}
    missing = [name for name in ("master", "worker") if not _configuration(known.get(name))]
    updating = _told(known, "Updating")
    degraded = _told(known, "Degraded")
    return [
        condition(
            "MachineConfigPoolsAvailable",
            not missing,
            "NoRenderedConfig" if missing else "AsExpected",
            f"without a rendered config: {', '.join(missing)}" if missing else "",
        ),
        condition("MachineConfigPoolsProgressing", bool(updating), "MachinesUpdating" if updating else "", updating),
        condition("MachineConfigPoolsDegraded", bool(degraded), "PoolDegraded" if degraded else "", degraded),
    ]


def _configuration(pool: Object | None) -> str:
    return str((((pool or {}).get("spec") or {}).get("configuration") or {}).get("name") or "")


def _told(pools: dict[str, Object], kind: str) -> str:
    lines = []
    for name, pool in sorted(pools.items()):
        conditions = pool["status"]["conditions"]
        if status_of(conditions, kind):
            lines.append(f"{name}: " + next(entry.get("message", "") for entry in conditions if entry["type"] == kind))
    return "\n".join(lines)


class ServerReport:
    """Whether new machines can be told what to become."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._servers = program.follow(DAEMON_SETS, names.NAMESPACE, fields=f"metadata.name={SERVER}")

    def add(self) -> None:
        self._program.add(Controller("MachineConfigServerController", self._sync, ((self._servers, always),)))

    def _sync(self, _: str) -> None:
        assert self._program.status is not None
        self._program.status.set(*server_conditions(self._servers.get(SERVER, names.NAMESPACE)))


def server_conditions(daemon_set: Object | None) -> list[Condition]:
    status = (daemon_set or {}).get("status") or {}
    wanted, ready = (int(status.get(key) or 0) for key in ("desiredNumberScheduled", "numberReady"))
    told = f"{ready} of {wanted} {SERVER} pods are ready" if daemon_set else f"there is no DaemonSet {SERVER}"
    return [
        condition("MachineConfigServerAvailable", ready > 0, "AsExpected" if ready else "NoServerReady", told),
        condition("MachineConfigServerProgressing", ready < wanted, "RollingOut" if ready < wanted else "", told),
    ]
