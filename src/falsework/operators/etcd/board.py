"""The newest look at the cluster, for all controllers of this operator: one asks etcd, the others are woken."""

from __future__ import annotations

import threading
from collections.abc import Callable

from falsework.etcd.members import View


class Board:
    def __init__(self) -> None:
        self._view: View | None = None
        self._lock = threading.Lock()
        self._readers: list[Callable[[], None]] = []

    @property
    def view(self) -> View | None:
        with self._lock:
            return self._view

    def wakes(self, reader: Callable[[], None]) -> None:
        self._readers.append(reader)

    def put(self, view: View) -> None:
        with self._lock:
            changed = view != self._view
            self._view = view
        if changed:
            for reader in self._readers:
                reader()
