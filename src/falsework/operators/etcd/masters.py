"""What the API's objects say about masters: where they are, and what their etcd pods are waiting for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.operators.etcd.decision import DESTROYED
from falsework.operators.etcd.membership import Masters
from falsework.operators.etcd.pod import CONTAINER, POD_NAME

INVENTORY_NAMESPACE, INVENTORY = "openshift-config", "machine-inventory"


@dataclass(frozen=True)
class Inventory:
    masters: tuple[str, ...]
    """Addresses of all masters the site has, whether they are there yet or not."""
    bootstrap: str


def inventory_in(config_map: Object | None) -> Inventory:
    where = f"ConfigMap {INVENTORY_NAMESPACE}/{INVENTORY}"
    if config_map is None:
        raise FalseworkError(f"{where} is missing", cause="the bootstrap has not created it yet")
    try:
        entries = json.loads((config_map.get("data") or {})["inventory.json"])
        by_role = [(str(entry["role"]), str(entry["address"])) for entry in entries]
    except (KeyError, ValueError, TypeError):
        raise FalseworkError(f"{where} cannot be read", cause="its inventory.json is no list of machines") from None
    masters = tuple(sorted(address for role, address in by_role if role == "master"))
    return Inventory(masters, next((address for role, address in by_role if role == "bootstrap"), ""))


def address_of(node: Object) -> str | None:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(entry["address"]) for entry in addresses if entry["type"] == "InternalIP"), None)


def masters_in(nodes: Iterable[Object], pods: Iterable[Object]) -> Masters:
    """A node that is being deleted is one no more. Whose etcd runs and is not ready waits, as far as pods tell: it may
    as well be a member that learns, which the member list knows."""
    addresses = {
        str(node["metadata"]["name"]): address
        for node in nodes
        if not node["metadata"].get("deletionTimestamp") and (address := address_of(node))
    }
    states = {str(pod["metadata"]["name"]): _etcd(pod) for pod in pods}
    own = {name: states.get(f"{POD_NAME}-{name}", {}) for name in addresses}
    return Masters(
        addresses,
        {name for name, status in own.items() if _runs(status) and not status.get("ready")},
        {name for name, status in own.items() if DESTROYED in _last_words(status)},
    )


def _etcd(pod: Object) -> Object:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((entry for entry in statuses if entry["name"] == CONTAINER), {})


def _runs(status: Object) -> bool:
    return "running" in (status.get("state") or {})


def _last_words(status: Object) -> str:
    """Of the newest run, if it has ended: one that runs is finding out anew."""
    if _runs(status):
        return ""
    ended = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return str(ended.get("message") or "")
