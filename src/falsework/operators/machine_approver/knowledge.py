"""What the rules need to know, out of the cluster: the site's machines, and who has fetched its config."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from falsework.csr.knowledge import machines_in
from falsework.csr.rules import KnownMachine
from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.kube.informer import version_of
from falsework.operators.machine_config import names
from falsework.operators.machine_config.served import fetches_in

FETCH_COUNTS = 2 * 3600.0
"""Seconds in which a machine that has fetched its config may ask to join, as OpenShift gives a new Machine."""

Look = Callable[[], Object | None]
"""A ConfigMap as it is now, if it is there."""


class InventoryMachines(Mapping[str, KnownMachine]):
    """The machines of the site, read again when the inventory has changed. One that cannot be read names nobody."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._seen = ""
        self._known: dict[str, KnownMachine] = {}

    def __getitem__(self, name: str) -> KnownMachine:
        return self._machines()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._machines())

    def __len__(self) -> int:
        return len(self._machines())

    def _machines(self) -> dict[str, KnownMachine]:
        body = self._look() or {}
        version = version_of(body)
        if version != self._seen:
            try:
                self._known = machines_in(str((body.get("data") or {}).get(names.INVENTORY_KEY, "[]")).encode())
            except FalseworkError:
                self._known = {}
            self._seen = version
        return self._known


class FetchedFromCluster:
    """Who has fetched its config from a master's Machine Config Server, and whether the bootstrap machine is done. That
    the inventory has changed is noticed too: a machine that was unknown may be of the site now."""

    def __init__(self, served: Look, bootstrap: Look, inventory: Look, clock: Callable[[], float] = time.time) -> None:
        self._served = served
        self._bootstrap = bootstrap
        self._inventory = inventory
        self._clock = clock
        self._seen: tuple[str, ...] = ()

    def refresh(self) -> bool:
        seen = tuple(version_of(look() or {}) for look in (self._served, self._bootstrap, self._inventory))
        changed, self._seen = seen != self._seen, seen
        return changed

    def reason_against(self, node: str) -> str | None:
        return reason_against(node, self._served(), self._clock())

    @property
    def bootstrap_is_complete(self) -> bool:
        return ((self._bootstrap() or {}).get("data") or {}).get("status") == "complete"


def reason_against(node: str, served: Object | None, now: float) -> str | None:
    """Why a machine counts as one that has not fetched its config from the cluster; None if it has."""
    fetch = fetches_in(served).get(node)
    if fetch is None:
        return f"{node} has not fetched its config from a Machine Config Server of the masters"
    if now - fetch.time > FETCH_COUNTS:
        hours = (now - fetch.time) / 3600
        return f"{node} fetched its config {hours:.0f} hours ago: too long for a machine that joins"
    return None
