"""Taking a payload into the cluster, as far as it goes, again and again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Executor
from dataclasses import dataclass, field

from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object, Unreachable
from falsework.operators.cluster_version.builders import NotYet, apply, pre_create
from falsework.operators.cluster_version.payload import Chain, Key, Manifest, Mode, Payload, plan

_MAY_BE_ILL = ("ClusterOperator", "Deployment", "DaemonSet", "Job")


@dataclass(frozen=True)
class Failure:
    """A manifest that could not be applied."""

    manifest: Manifest
    why: str


@dataclass(frozen=True)
class Progress:
    done: int
    total: int
    waiting: tuple[NotYet, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def complete(self) -> bool:
        return self.done == self.total


@dataclass
class _Way:
    """How far one chain has come."""

    chain: Chain
    position: int = 0
    waiting: NotYet | None = None
    failure: Failure | None = None

    @property
    def finished(self) -> bool:
        return self.position == len(self.chain)


@dataclass
class Sync:
    """One way through a payload. What `unmanaged` names is somebody else's, and counts as done; what `left` names is
    for whoever comes after us, and is still to be done."""

    client: Client
    payload: Payload
    mode: Mode
    unmanaged: Collection[Key]
    pool: Executor
    applied: Callable[[Manifest, Object], None] = lambda *_: None
    ended: Callable[[], bool] = lambda: False
    left: Collection[Key] = ()
    health_only: bool = False
    """Only what may be well or not: everything else has been looked at before."""
    _steps: list[list[_Way]] = field(init=False)
    _skipped: int = field(init=False)
    _to_pre_create: list[Manifest] = field(init=False)

    def __post_init__(self) -> None:
        managed = [manifest for manifest in self.payload.manifests if manifest.key not in self.unmanaged]
        if self.health_only:
            managed = [manifest for manifest in managed if manifest.kind in _MAY_BE_ILL]
        self._skipped = len(self.payload.manifests) - len(managed)
        ours = [manifest for manifest in managed if manifest.key not in self.left]
        self._steps = [[_Way(chain) for chain in chains] for chains in plan(ours, self.mode)]
        self._to_pre_create = [manifest for manifest in managed if manifest.kind == "ClusterOperator"]

    def go_on(self) -> Progress:
        """From where it stopped; Unreachable if the API is not there, with nothing lost."""
        for ways in self._steps:
            unreachable = [error for error in self.pool.map(self._walk, ways) if error is not None]
            if unreachable:
                raise unreachable[0]
            # After the definitions, at the first chance: long before most of their chains get there.
            self._pre_create()
            if not all(way.finished for way in ways):
                break
        return self.progress()

    def progress(self) -> Progress:
        ways = [way for ways in self._steps for way in ways]
        return Progress(
            self._skipped + sum(way.position for way in ways),
            len(self.payload.manifests),
            tuple(way.waiting for way in ways if way.waiting is not None),
            tuple(way.failure for way in ways if way.failure is not None),
        )

    def _walk(self, way: _Way) -> Unreachable | None:
        while not way.finished and not self.ended():
            way.waiting = way.failure = None
            manifest = way.chain[way.position]
            try:
                apply(self.client, manifest, self.mode, self.applied)
            except NotYet as waiting:
                way.waiting = waiting
                return None
            except Unreachable as error:
                return error
            except FalseworkError as error:
                way.failure = Failure(manifest, error.cause or error.what)
                return None
            way.position += 1
        return None

    def _pre_create(self) -> None:
        left = []
        for manifest in self._to_pre_create:
            try:
                pre_create(self.client, manifest)
            except Unreachable:
                raise
            except FalseworkError:
                left.append(manifest)
        self._to_pre_create = left
