"""The ClusterOperator: all that the controllers of an operator say, in the four words everybody understands.

A sub-condition counts for the word its name ends with: StaticPodsAvailable for Available. One that is bad is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from falsework.kube.client import ApiError, Object, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import CLUSTER_OPERATORS
from falsework.operators.runtime.conditions import Condition, condition, now, status_of, updated
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.program import Program

GOOD = {"Available": True, "Progressing": False, "Degraded": False, "Upgradeable": True}
INERTIA = {"Degraded": 120.0}
"""Seconds a bad sub-condition must have lasted before it counts: what passes by itself alarms nobody."""


def add_cluster_operator(program: Program, operators: Informer, name: str, told: str, namespace: str) -> None:
    """Says of the ClusterOperator `name` what the operator's object `told` says. The release's manifests make it."""
    reported = program.follow(CLUSTER_OPERATORS, fields=f"metadata.name={name}")

    def sync(_: str) -> float | None:
        live, operator = reported.get(name), operators.get(told, namespace)
        if live is None or operator is None:
            return None
        status, again = new_status(live.get("status") or {}, operator, program.version, datetime.now(UTC))
        if status != live.get("status"):
            try:
                program.client.replace(CLUSTER_OPERATORS, {**live, "status": status}, "status")
            except ApiError as error:
                # Changed or gone meanwhile: the watch brings it, and this is called again.
                if not error.is_conflict and not error.is_missing:
                    raise
        return again

    wakes = ((operators, _if_named(told)), (reported, always))
    program.add(Controller("ClusterOperatorController", sync, wakes))


def new_status(status: Object, operator: Object, version: str, moment: datetime) -> tuple[Object, float | None]:
    """The ClusterOperator's status, and the seconds after which a bad sub-condition will have lasted long enough."""
    said = (operator.get("status") or {}).get("conditions") or []
    unions = [union(kind, said, moment) for kind in GOOD]
    result = {**status, "conditions": updated(status.get("conditions") or [], [one for one, _ in unions], now())}
    reached = [{"name": "operator", "version": version}]
    at_work = status_of(result["conditions"], "Progressing") is True
    # The first version is there with the operand; a later one only when all of it has been rolled out.
    if status_of(result["conditions"], "Available") is True and not (at_work and status.get("versions")):
        result["versions"] = reached
    return result, min((after for _, after in unions if after is not None), default=None)


def union(kind: str, conditions: Iterable[Condition], moment: datetime) -> tuple[Condition, float | None]:
    """One condition of all whose names end with its name, and the seconds until that may change by itself."""
    good = GOOD[kind]
    about = sorted((entry for entry in conditions if entry["type"].endswith(kind)), key=lambda entry: entry["type"])
    bad = [entry for entry in about if entry["status"] != str(good)]
    left = [INERTIA.get(kind, 0.0) - _age(entry, moment) for entry in bad]
    if any(seconds <= 0 for seconds in left):
        known = any(entry["status"] == str(not good) for entry in bad)
        return condition(kind, not good if known else None, _reasons(kind, bad), _messages(bad)), None
    if kind == "Available" and not about:
        # Nobody has looked yet: to say that all is well would be a guess.
        return condition(kind, None, "NoData", "The operator has not yet said anything"), None
    # Who says the word itself knows best why it is so: an operand that is not wanted is Removed, not AsExpected.
    reason = next((entry.get("reason") for entry in about if entry["type"] == kind and entry not in bad), None)
    return condition(kind, good, reason or "AsExpected", _messages(about) or "All is well"), min(left, default=None)


def _age(entry: Condition, moment: datetime) -> float:
    since = datetime.fromisoformat(entry["lastTransitionTime"])
    return (moment - since).total_seconds()


def _reasons(kind: str, bad: list[Condition]) -> str:
    said = ((entry["type"].removesuffix(kind), entry.get("reason") or "Unknown") for entry in bad)
    return "::".join(f"{who}_{reason}" if who else reason for who, reason in said)


def _messages(conditions: list[Condition]) -> str:
    lines = [(entry["type"], line) for entry in conditions for line in (entry.get("message") or "").splitlines()]
    return "\n".join(f"{kind}: {line}" for kind, line in lines)


def _if_named(name: str) -> Callable[[WatchEvent], str | None]:
    return lambda event: "" if event.object["metadata"]["name"] == name else None
