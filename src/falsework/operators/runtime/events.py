"""Kubernetes Events about what an operator does, which are lines of its log as well.

They are written by a thread of their own: no work waits for them. The same thing told again is the same event, counted.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from dataclasses import dataclass

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object
from falsework.kube.event_budget import Budget
from falsework.kube.resources import EVENTS
from falsework.operators.runtime import conditions
from falsework.operators.runtime.log import Log

_MOST_WAITING = 200
_LONGEST_MESSAGE = 1000
_PARTING = 2.0
"""Seconds that events which were told have when the operator ends."""


@dataclass(frozen=True)
class _Told:
    level: str
    reason: str
    message: str


class Events:
    def __init__(self, client: Client, name: str, namespace: str, log: Log, kind: str = "Deployment") -> None:
        self._client = client
        self._name, self._namespace, self._kind = name, namespace, kind
        self._log = log
        self._budget = Budget()
        self._queue: queue.Queue[_Told | None] = queue.Queue(_MOST_WAITING)
        self._counts: dict[str, Object] = {}
        self._thread = threading.Thread(target=self._work, name="events", daemon=True)

    def normal(self, reason: str, message: str) -> None:
        self._log.info(message, reason=reason)
        self._send(_Told("Normal", reason, message))

    def warning(self, reason: str, message: str) -> None:
        self._log.warning(message, reason=reason)
        self._send(_Told("Warning", reason, message))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.ident is None:
            return
        try:
            self._queue.put(None, timeout=_PARTING)
        except queue.Full:
            return
        self._thread.join(_PARTING)

    def _send(self, told: _Told) -> None:
        if self._budget.take(told.reason):
            try:
                self._queue.put_nowait(told)
            except queue.Full:
                return  # The log has it.

    def _work(self) -> None:
        while (told := self._queue.get()) is not None:
            try:
                self._write(told)
            except FalseworkError as error:
                self._log.warning(f"An event could not be written: {error.cause or error.what}")

    def _write(self, told: _Told) -> None:
        body = self._event(told)
        name = body["metadata"]["name"]
        try:
            known = self._counts.get(name)
            if known is None:
                self._counts[name] = self._client.create(EVENTS, body, self._namespace)
                return
        except ApiError as error:
            if not error.is_conflict:
                raise
            known = self._client.get(EVENTS, name, self._namespace)
        patch = {"count": int(known.get("count") or 1) + 1, "lastTimestamp": conditions.now()}
        try:
            self._counts[name] = self._client.patch(EVENTS, name, patch, self._namespace)
        except ApiError as error:
            if not error.is_missing:
                raise
            # Old events go; this one is news again.
            self._counts[name] = self._client.create(EVENTS, body, self._namespace)

    def _event(self, told: _Told) -> Object:
        """Its name is made of what it says: told again, by a restarted operator too, it is the same event."""
        digest = hashlib.sha256(f"{told.level} {told.reason} {told.message}".encode()).hexdigest()[:16]
        moment = conditions.now()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{self._name}.{digest}", "namespace": self._namespace},
            "involvedObject": {
                "apiVersion": "apps/v1",
                "kind": self._kind,
                "name": self._name,
                "namespace": self._namespace,
            },
            "type": told.level,
            "reason": told.reason,
            "message": told.message[:_LONGEST_MESSAGE],
            "source": {"component": self._name},
            "reportingComponent": self._name,
            "reportingInstance": self._name,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
