"""Look at the ClusterVersion, take the payload in, say how far it is, and wait for a reason to look again."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from falsework.kube.client import ApiError, Client, Object, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import CLUSTER_OPERATORS, CLUSTER_VERSIONS
from falsework.operators.cluster_version.drift import Drift
from falsework.operators.cluster_version.payload import Key, Mode, Payload
from falsework.operators.cluster_version.status import Situation, mode_for, new_status, unmanaged
from falsework.operators.cluster_version.sync import Failure, Progress, Sync
from falsework.operators.runtime import conditions
from falsework.operators.runtime.log import Changes, Say
from falsework.operators.runtime.waiting import Backoff

NAME = "version"
COMPONENT = "cluster-version-operator"

LASTING = 10.0
"""Seconds after which a failure is told: by then whatever it needed should have come."""
_LOOK_AGAIN = 10.0
_TRIES = 3


@dataclass
class Operator:
    client: Client
    payload: Payload
    pool: Executor
    drift: Drift
    say: Say
    ended: Callable[[], bool]
    resync: float = 600.0
    left: frozenset[Key] = frozenset()
    """What another one of us is to do."""
    clock: Callable[[], float] = time.monotonic
    _sync: Sync | None = None
    _for: tuple[Mode, frozenset[Key]] | None = None
    _since: dict[tuple[Key, str], float] = field(default_factory=dict)
    _began: float = 0.0
    _noticed: dict[tuple[str, str], tuple[object, ...]] = field(default_factory=dict)
    _followed: list[Informer] = field(default_factory=list)
    wake: Callable[[str], None] = lambda _: None
    _known: Object | None = None
    """The ClusterVersion as it was last seen: deleted by mistake, it is made again."""

    def __post_init__(self) -> None:
        self._changes = Changes(self.say)
        self._backoff = Backoff(0.2, _LOOK_AGAIN)

    def sync(self, _key: str) -> float:
        """One look, and what follows from it; how long to wait for the next."""
        version = self._cluster_version()
        self._follow()
        if version is None:
            self._changes.say("progress", f"Waiting for the ClusterVersion {NAME}")
            return _LOOK_AGAIN
        self._known = version
        sync = self._sync_for(version)
        if not _has_begun(version, self.payload):
            # Said before the work, too: a person who looks at once sees what is going on.
            self._write(version, sync, sync.progress())
        progress = sync.go_on()
        if not progress.failures and not self.ended():
            self.drift.follow({*sync.unmanaged, *self.left})
        self._write(self._cluster_version() or version, sync, progress)
        return self._pause(sync, progress)

    def noticed(self, event: WatchEvent) -> None:
        """Something in the cluster changed that may be a reason to look. What only this operator writes is none."""
        body = event.object
        status = body.get("status") or {}
        said = {entry["type"]: entry["status"] for entry in status.get("conditions") or []}
        operator = (said.get("Available"), said.get("Degraded"), status.get("versions"))
        what: tuple[object, ...] = (event.type == "DELETED",)
        what += operator if body.get("kind") == "ClusterOperator" else (body["metadata"].get("generation"),)
        key = (str(body.get("kind")), str(body["metadata"]["name"]))
        if self._noticed.get(key) != what:
            self._noticed[key] = what
            self.wake("")

    def _follow(self) -> None:
        """Only now: before their definitions are there, they could not be."""
        if not self._followed:
            resources = (CLUSTER_VERSIONS, CLUSTER_OPERATORS)
            self._followed = [Informer(self.client, resource, self.noticed).start() for resource in resources]

    def _pause(self, sync: Sync, progress: Progress) -> float:
        if progress.failures:
            return self._backoff.pause()
        self._backoff.reset()
        if sync.mode is Mode.RECONCILE or progress.complete:
            # What was well may not be any more: the next look does not go on, it begins.
            self._sync = None
        return self.resync if progress.complete else min(_LOOK_AGAIN, self.resync)

    def _cluster_version(self) -> Object | None:
        try:
            return self.client.get(CLUSTER_VERSIONS, NAME)
        except ApiError as error:
            if not error.is_missing:
                raise
        self._own_definitions()
        if self._known is None:
            return None
        metadata = {"name": NAME, "labels": self._known["metadata"].get("labels") or {}}
        body = {
            "apiVersion": CLUSTER_VERSIONS.api_version,
            "kind": "ClusterVersion",
            "metadata": metadata,
            "spec": self._known["spec"],
        }
        made = self.client.create(CLUSTER_VERSIONS, body)
        self.say(f"The ClusterVersion {NAME} was gone and has been made again")
        # What the cluster has been through is not forgotten with it.
        return self.client.replace(CLUSTER_VERSIONS, {**made, "status": self._known.get("status") or {}}, "status")

    def _own_definitions(self) -> None:
        """Without these there is nobody to ask what else is wanted."""
        own = [
            manifest
            for manifest in self.payload.manifests
            if manifest.component == COMPONENT and manifest.kind == "CustomResourceDefinition"
        ]
        payload = Payload(self.payload.version, self.payload.image, tuple(own))
        Sync(self.client, payload, Mode.INSTALL, (), self.pool).go_on()

    def _sync_for(self, version: Object) -> Sync:
        wanted = (mode_for(version.get("status") or {}, self.payload), unmanaged(version.get("spec") or {}))
        # One that lasts, because it waits for something, must not keep what it has done from being looked at again.
        stale = self.clock() - self._began >= self.resync
        if self._for != wanted or stale:
            self._for, self._began = wanted, self.clock()
            self._sync = self._new_sync(*wanted)
        elif self._sync is None:
            self._sync = self._new_sync(*wanted, health_only=True)
        return self._sync

    def _new_sync(self, mode: Mode, unmanaged: frozenset[Key], *, health_only: bool = False) -> Sync:
        return Sync(
            self.client,
            self.payload,
            mode,
            unmanaged,
            self.pool,
            self.drift.note,
            self.ended,
            left=self.left,
            health_only=health_only,
        )

    def _write(self, version: Object, sync: Sync, progress: Progress) -> None:
        situation = Situation(self.payload, sync.mode, progress, self._lasting(progress))
        for _ in range(_TRIES):
            status = new_status(version, situation, conditions.now())
            message = next(entry["message"] for entry in status["conditions"] if entry["type"] == "Progressing")
            self._changes.say("progress", message)
            for failure in progress.failures:
                self._changes.say(str(failure.manifest), f"Could not apply {failure.manifest}: {failure.why}")
            if status == version.get("status"):
                return
            try:
                self._known = self.client.replace(CLUSTER_VERSIONS, {**version, "status": status}, "status")
            except ApiError as error:
                if not error.is_conflict and not error.is_missing:
                    raise
                version = self.client.get(CLUSTER_VERSIONS, NAME)
            else:
                return

    def _lasting(self, progress: Progress) -> tuple[Failure, ...]:
        now = self.clock()
        failures = {(failure.manifest.key, failure.why): failure for failure in progress.failures}
        self._since = {key: self._since.get(key, now) for key in failures}
        return tuple(failure for key, failure in failures.items() if now - self._since[key] >= LASTING)


def _has_begun(version: Object, payload: Payload) -> bool:
    history = (version.get("status") or {}).get("history") or [{}]
    return (history[0].get("version"), history[0].get("image")) == (payload.version, payload.image)
