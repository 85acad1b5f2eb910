"""One operator's process: what it follows, the controllers at work on it, and what they have to say."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from falsework.kube.client import Client, Object, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import Resource
from falsework.kube.trouble import Trouble
from falsework.operators.runtime.conditions import condition, now, updated
from falsework.operators.runtime.controller import Controller, Key, Worker, mistake
from falsework.operators.runtime.events import Events
from falsework.operators.runtime.log import Log
from falsework.operators.runtime.operator_status import OperatorStatus

HANGS = 300.0
"""Seconds after which a sync that has not ended counts as one that never will."""
_FINISHING = 20.0
"""Seconds a sync in hand has when the operator ends: less than its pod is given."""


def whole(body: Object) -> Object:
    """Everything of an object is remembered."""
    return body


@dataclass(eq=False)
class Program:
    """`build` functions get one, follow what they need and add controllers. Nothing of that asks the API yet."""

    name: str
    """Such as etcd-operator."""
    namespace: str
    client: Client
    log: Log
    events: Events
    version: str
    """Of the release."""
    images: dict[str, str]
    status: OperatorStatus | None = None
    """None for programs without an operator.openshift.io object of their own."""
    options: argparse.Namespace = field(default_factory=argparse.Namespace)
    """What else it was told."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when it is to end: for syncs that take long and can be left at any point."""

    def __post_init__(self) -> None:
        self._followed: dict[tuple[object, ...], Informer] = {}
        self.workers: list[Worker] = []
        self._trouble = Trouble(self.log.warning)

    def follow(
        self,
        resource: Resource,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        keep: Callable[[Object], Object] = whole,
    ) -> Informer:
        """Followed once, however often it is asked for. Its objects are shared: nobody changes them."""
        where = (resource, namespace, labels, fields, keep)
        known = self._followed.get(where)
        if known is None:
            known = self._followed[where] = Informer(
                self.client,
                resource,
                namespace=namespace,
                labels=labels,
                fields=fields,
                keep=keep,
                on_trouble=self._trouble.tell,
            )
        return known

    def add(self, controller: Controller) -> Worker:
        """It can be woken by hand, too."""
        log = self.log.of(controller.name)
        worker = Worker(controller, log, lambda lasting: self._degraded(controller, lasting))
        self.workers.append(worker)
        for informer, key in controller.wakes:
            informer.listen(_waker(worker, key, log))
        return worker

    def start_following(self) -> None:
        for informer in self._followed.values():
            informer.start()

    def run(self, ended: threading.Event) -> bool:
        """Until it is told to end. Whether no sync is in hand any more: they get some time to finish."""
        if not self._all_synced(ended):
            return True
        for worker in self.workers:
            worker.start()
        ended.wait()
        for worker in self.workers:
            worker.stop()
        deadline = time.monotonic() + _FINISHING
        busy = [worker.name for worker in self.workers if not worker.join(max(0.0, deadline - time.monotonic()))]
        if busy:
            self.log.warning(f"Ends in the middle of {', '.join(busy)}")
        return not busy

    def stop_following(self) -> None:
        for informer in self._followed.values():
            informer.stop()

    def hanging(self, now: float) -> str:
        """Which controllers have been in one sync for too long, if any."""
        since = {worker.name: worker.busy_since for worker in self.workers}
        return ", ".join(
            f"{name} has been busy for {now - began:.0f} s"
            for name, began in since.items()
            if began is not None and now - began > HANGS
        )

    def _all_synced(self, ended: threading.Event) -> bool:
        for informer in self._followed.values():
            while not informer.wait_synced(0.2):
                if ended.is_set():
                    return False
        return not ended.is_set()

    def _degraded(self, controller: Controller, lasting: dict[str, str]) -> None:
        if self.status is None:
            return
        kind = f"{controller.name}Degraded"
        message = "\n".join(f"{key}: {why}" if key else why for key, why in sorted(lasting.items()))
        said = condition(kind, True, "SyncError", message) if lasting else condition(kind, False, "AsExpected")

        def change(status: Object) -> Object:
            known = status.get("conditions") or []
            # All is well, and nobody has said anything else: a dozen controllers need not say so when they start.
            silent = not lasting and all(entry["type"] != kind for entry in known)
            return status if silent else {**status, "conditions": updated(known, [said], now())}

        self.status.update(change)


def _waker(worker: Worker, key_of: Key, log: Log) -> Callable[[WatchEvent], None]:
    def tell(event: WatchEvent) -> None:
        try:
            key = key_of(event)
        except Exception as error:  # noqa: BLE001 - it would end the following of this kind, for all controllers
            log.error(str(mistake(error)))
            return
        if key is not None:
            worker.wake(key)

    return tell
