"""What somebody changed or removed of the release's objects is put right as soon as it is seen.

All kinds of objects a release has are followed, by their metadata alone: that is enough to know that something was
done, and costs next to nothing. What was done is not asked: the object is applied again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from typing import Any

from falsework.kube.client import Client, Object, WatchEvent
from falsework.kube.informer import Informer, key_of, version_of
from falsework.kube.resources import Resource
from falsework.kube.trouble import Trouble
from falsework.operators.cluster_version.builders import NotYet, apply
from falsework.operators.cluster_version.payload import Key, Manifest, Mode, Payload
from falsework.operators.runtime.log import Say

_CALM = 2.0
"""Seconds between two repairs of one object: who quarrels with us does not get all our time."""

Mark = tuple[Any, ...]


class Drift:
    def __init__(self, client: Client, payload: Payload, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._say = say
        self._clock = clock
        # Operators' reports are looked at anyway: whether they are there, and what they say.
        manifests = [manifest for manifest in payload.manifests if manifest.kind != "ClusterOperator"]
        self._manifests = {_name(manifest): manifest for manifest in manifests}
        self._followed: dict[Resource, Informer] = {}
        self._marks: dict[Key, Mark] = {}
        self._repaired: dict[str, float] = {}
        self._unmanaged: Collection[Key] = ()
        self.wake: Callable[[str, float], None] = lambda _name, _after: None

    def note(self, manifest: Manifest, live: Object) -> None:
        """How it was when it was applied: whatever differs from that was somebody else."""
        self._marks[manifest.key] = _mark(manifest, live)

    def follow(self, unmanaged: Collection[Key]) -> None:
        """From now on, all but what is `unmanaged`."""
        self._unmanaged = unmanaged
        if self._followed:
            return
        found: dict[Resource, dict[tuple[str, str], Manifest]] = {}
        for manifest in self._manifests.values():
            of_kind = found.setdefault(self._client.resource_of(manifest.body), {})
            of_kind[manifest.namespace, manifest.name] = manifest
        metadata, trouble = self._client.metadata_only(), Trouble(self._say)
        self._followed = {
            resource: Informer(metadata, resource, self._listener(manifests), keep=_little, on_trouble=trouble.tell)
            for resource, manifests in found.items()
        }
        for informer in self._followed.values():
            informer.start()

    def repair(self, name: str) -> None:
        manifest = self._manifests[name]
        if manifest.key not in self._unmanaged:
            self._repaired[name] = self._clock()
            with contextlib.suppress(NotYet):  # It is in; whether it works is for others to say.
                apply(self._client, manifest, Mode.RECONCILE, self.note)

    def _listener(self, manifests: dict[tuple[str, str], Manifest]) -> Callable[[WatchEvent], None]:
        def hear(event: WatchEvent) -> None:
            manifest = manifests.get(key_of(event.object))
            if manifest is not None and self._is_news(event, manifest):
                name = _name(manifest)
                self.wake(name, max(0.0, self._repaired.get(name, -_CALM) + _CALM - self._clock()))

        return hear

    def _is_news(self, event: WatchEvent, manifest: Manifest) -> bool:
        if event.type == "DELETED":
            return True
        # One that is made once is its owner's from then on.
        return not manifest.create_only and _mark(manifest, event.object) != self._marks.get(manifest.key)


def _name(manifest: Manifest) -> str:
    return "/".join(manifest.key)


def _mark(manifest: Manifest, live: Object) -> Mark:
    """Differs when somebody changed what it is to be. Those without a generation have nothing else."""
    metadata, wanted = live["metadata"], manifest.body["metadata"]
    named = [(part, key) for part in ("labels", "annotations") for key in sorted(wanted.get(part) or {})]
    ours = [(metadata.get(part) or {}).get(key) for part, key in named]
    return metadata["uid"], metadata.get("generation") or version_of(live), *ours


def _little(body: Object) -> Object:
    """What an informer needs to know it again."""
    keys = ("name", "namespace", "resourceVersion")
    return {"metadata": {key: body["metadata"][key] for key in keys if key in body["metadata"]}}
