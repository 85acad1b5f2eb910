"""What a Node of the site has to carry: labels of its role, the masters' taint, and the config it was made with.

A kubelet may not label its own Node with a role: the inventory says what a machine is, not the machine.
"""

from __future__ import annotations

from typing import Any

from falsework.assets.served_config import first_annotations
from falsework.kube.client import Object
from falsework.site.model import Role

MASTER, CONTROL_PLANE, WORKER = (f"node-role.kubernetes.io/{name}" for name in ("master", "control-plane", "worker"))
_NO_SCHEDULE = "NoSchedule"


def correction(node: Object, role: Role, masters_schedulable: bool | None, config: str | None) -> Object | None:
    """The merge patch that puts a Node right; None if it is.

    `masters_schedulable` is None while nobody knows: then labels are given and taints left alone. `config` is the name
    of the rendered config the machine was made with: a Node that knows its own keeps it.
    """
    metadata: dict[str, Any] = {}
    if labels := _changed_labels(node["metadata"].get("labels") or {}, role, masters_schedulable):
        metadata["labels"] = labels
    known = node["metadata"].get("annotations") or {}
    first = first_annotations(config) if config else {}
    if first and not first.keys() & known.keys():
        metadata["annotations"] = first
    patch: Object = {"metadata": metadata} if metadata else {}
    old = (node.get("spec") or {}).get("taints") or []
    new = _taints(old, role, masters_schedulable)
    if new != old:
        # A list is replaced whole: refused if somebody has changed the Node meanwhile.
        metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
        patch = {"metadata": metadata, "spec": {"taints": new}}
    return patch or None


def _changed_labels(known: dict[str, str], role: Role, masters_schedulable: bool | None) -> dict[str, str | None]:
    is_master = role is Role.MASTER
    wanted: dict[str, bool | None] = {MASTER: is_master, CONTROL_PLANE: is_master}
    wanted[WORKER] = masters_schedulable if is_master else True
    return {
        label: "" if present else None
        for label, present in wanted.items()
        if present is not None and present != (label in known)
    }


def _taints(old: list[Object], role: Role, masters_schedulable: bool | None) -> list[Object]:
    if role is Role.MASTER and masters_schedulable is None:
        return old
    kept = [taint for taint in old if not _keeps_off(taint, MASTER) and not _keeps_off(taint, CONTROL_PLANE)]
    if role is not Role.MASTER or masters_schedulable:
        return kept
    if any(_keeps_off(taint, MASTER) for taint in old):
        return old
    return [*old, {"key": MASTER, "effect": _NO_SCHEDULE}]


def _keeps_off(taint: Object, key: str) -> bool:
    return taint.get("key") == key and taint.get("effect") == _NO_SCHEDULE
