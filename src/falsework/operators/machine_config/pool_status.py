"""How far the machines of a pool are: pure functions from Nodes to a MachineConfigPool's status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from falsework.assets.served_config import CURRENT_CONFIG, REASON, STATE
from falsework.kube.client import Object
from falsework.operators.runtime.conditions import Condition, condition, updated

DONE = "Done"
_BROKEN = ("Degraded", "Unreconcilable")


@dataclass(frozen=True)
class Machine:
    """What a Node says about its config."""

    name: str
    config: str
    state: str
    reason: str
    is_ready: bool

    @classmethod
    def of(cls, node: Object) -> Machine:
        said = node["metadata"].get("annotations") or {}
        conditions = (node.get("status") or {}).get("conditions") or ()
        ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
        schedulable = not (node.get("spec") or {}).get("unschedulable")
        config, state, reason = (str(said.get(key) or "") for key in (CURRENT_CONFIG, STATE, REASON))
        return cls(str(node["metadata"]["name"]), config, state, reason, ready and schedulable)

    def has(self, config: str) -> bool:
        return self.config == config and self.state == DONE

    @property
    def is_broken(self) -> bool:
        return self.state in _BROKEN


def with_render_failure(status: Object, failure: str, moment: str) -> Object:
    """The status with what is to be said of its rendering: empty if it went well."""
    said = condition("RenderDegraded", bool(failure), "", failure)
    return {**status, "conditions": updated(status.get("conditions") or [], [said], moment)}


def new_status(pool: Object, nodes: Sequence[Object], moment: str) -> Object:
    """The status a pool is to have. What is not ours in it stays, and so does what was said of its rendering."""
    spec, old = (pool.get(part) or {} for part in ("spec", "status"))
    wanted = spec.get("configuration") or {}
    name = str(wanted.get("name") or "")
    machines = sorted((Machine.of(node) for node in nodes), key=lambda machine: machine.name)
    with_it = [machine for machine in machines if machine.has(name)]
    is_updated = bool(name) and len(with_it) == len(machines)
    said = _conditions(machines, name, bool(spec.get("paused")), _render_failure(old))
    return {
        **old,
        "observedGeneration": int(pool["metadata"].get("generation") or 0),
        # Until all machines have the next one, it is the last that all of them had.
        "configuration": wanted if is_updated else old.get("configuration") or wanted,
        "machineCount": len(machines),
        "updatedMachineCount": len(with_it),
        "readyMachineCount": sum(machine.is_ready for machine in with_it),
        "unavailableMachineCount": sum(not machine.is_ready or machine.state != DONE for machine in machines),
        "degradedMachineCount": sum(machine.is_broken for machine in machines),
        "conditions": updated(old.get("conditions") or [], said, moment),
    }


def _render_failure(status: Object) -> str:
    for entry in status.get("conditions") or ():
        if entry["type"] == "RenderDegraded" and entry["status"] == "True":
            return str(entry.get("message") or "")
    return ""


def _conditions(machines: Sequence[Machine], config: str, is_paused: bool, render_failure: str) -> list[Condition]:
    behind = [machine for machine in machines if not machine.has(config)]
    broken = [machine for machine in machines if machine.is_broken]
    told = "; ".join(f"{machine.name}: {machine.reason or machine.state}" for machine in broken)
    bad = "; ".join(text for text in (told, render_failure) if text)
    return [
        _updated(behind, config),
        _updating(behind, config, is_paused),
        condition("NodeDegraded", bool(broken), f"{len(broken)} nodes are reporting degraded" if broken else "", told),
        condition("Degraded", bool(bad), "", bad),
    ]


def _updated(behind: Sequence[Machine], config: str) -> Condition:
    if behind or not config:
        return condition("Updated", False)
    return condition("Updated", True, "", f"All nodes are updated with {config}")


def _updating(behind: Sequence[Machine], config: str, is_paused: bool) -> Condition:
    if not behind:
        return condition("Updating", False)
    if is_paused:
        return condition("Updating", False, "", f"Pool is paused; will not update to {config}")
    machines = ", ".join(_how_far(machine, config) for machine in behind)
    return condition("Updating", True, "", f"All nodes are to be updated to {config}; not yet: {machines}")


def _how_far(machine: Machine, config: str) -> str:
    if not machine.config:
        return f"{machine.name} (has not said which config it has)"
    if machine.config == config:
        return f"{machine.name} ({machine.state or 'has not said how far it is'})"
    return (
        f"{machine.name} (has {machine.config}; machines that run are not changed: make it anew to give it the new one)"
    )
