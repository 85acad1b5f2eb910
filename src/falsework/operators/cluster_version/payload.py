"""A release's manifests, and the order they are applied in."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.manifests.cluster_objects import CREATE_ONLY
from falsework.manifests.objects import Manifests, Object
from falsework.manifests.operators import AFTER_PIVOT
from falsework.manifests.release import release_manifests

_FILE = re.compile(r"^0000_(?P<level>[0-9]{2})_(?P<component>[^_]+)_")
_SUFFIXES = (".yaml", ".yml", ".json")
_UNNUMBERED = 99
_AWAITED = ("machine-config", "etcd", "kube-", "network")
"""Components in the order in which a new cluster waits for their pods, by how their names begin."""

Key = tuple[str, str, str, str]
"""Group, kind, namespace, name: how a ClusterVersion's overrides name an object."""

Chain = list["Manifest"]
"""One after the other."""


class Mode(Enum):
    INSTALL = "install"
    UPDATE = "update"
    RECONCILE = "reconcile"


@dataclass(frozen=True)
class Manifest:
    file: str
    body: Object

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace") or "")

    @cached_property
    def key(self) -> Key:
        group = str(self.body["apiVersion"]).rpartition("/")[0]
        return group, self.kind, self.namespace, self.name

    @property
    def create_only(self) -> bool:
        return self._is_annotated(CREATE_ONLY)

    @property
    def after_pivot(self) -> bool:
        return self._is_annotated(AFTER_PIVOT)

    @property
    def level(self) -> int:
        found = _FILE.match(self.file)
        return int(found["level"]) if found else _UNNUMBERED

    @property
    def component(self) -> str:
        found = _FILE.match(self.file)
        return found["component"] if found else self.file

    def _is_annotated(self, name: str) -> bool:
        return (self.body["metadata"].get("annotations") or {}).get(name) == "true"

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f'{self.kind.lower()} "{place}"'


@dataclass(frozen=True)
class Payload:
    version: str
    image: str
    manifests: tuple[Manifest, ...]

    @cached_property
    def digest(self) -> str:
        """Stands for everything in it."""
        content = json.dumps([[manifest.file, manifest.body] for manifest in self.manifests], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:22]

    @cached_property
    def after_pivot(self) -> frozenset[Key]:
        return frozenset(manifest.key for manifest in self.manifests if manifest.after_pivot)


def own_payload(version: str, image: str, images: Mapping[str, str]) -> Payload:
    """What this Falsework brings. `images` are the release's, by name."""
    return _payload(version, image, release_manifests(version, {**images, "release": image}))


def payload_in(folder: Path, version: str, image: str) -> Payload:
    """A folder of manifests, as /release-manifests is in an OpenShift release."""
    # Reading YAML costs a start; the release's own manifests need none.
    from falsework.assets.serialize import documents_in

    paths = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES) if folder.is_dir() else []
    if not paths:
        raise FalseworkError(f"{folder} has no manifests", fix="name the folder the release's manifests are in")
    found = {path.name: list(documents_in(str(path), path.read_bytes())) for path in paths}
    return _payload(version, image, found)


def _payload(version: str, image: str, files: Manifests) -> Payload:
    manifests = tuple(Manifest(file, body) for file, bodies in sorted(files.items()) for body in bodies)
    seen: dict[Key, str] = {}
    for manifest in manifests:
        if not manifest.body.get("apiVersion") or not (manifest.body.get("metadata") or {}).get("name"):
            raise FalseworkError(f"{manifest.file} has an object without apiVersion or name")
        if manifest.key in seen:
            raise FalseworkError(f"{manifest.file} has the same {manifest} as {seen[manifest.key]}")
        seen[manifest.key] = manifest.file
    return Payload(version, image, manifests)


def plan(manifests: Iterable[Manifest], mode: Mode) -> list[list[Chain]]:
    """Steps one after the other; in each, chains side by side.

    A first install starts everything at once: what needs something else is tried again. Pods that the others wait for
    come first, and before the definitions they will ask for: the API is slowest with those. An update goes by run
    levels, because what runs must not meet a part that is newer than what it needs. Afterwards the order is of no
    importance, and a different one every time finds what depends on it.
    """
    if mode is Mode.RECONCILE:
        shuffled = [[manifest] for manifest in manifests]
        random.shuffle(shuffled)
        return [shuffled]
    ordered = sorted(manifests, key=lambda one: (one.level, one.file))
    if mode is Mode.INSTALL:
        parts: dict[tuple[int, int, str], Chain] = {}
        for manifest in ordered:
            parts.setdefault((_turn(manifest), _urgency(manifest), manifest.component), []).append(manifest)
        return [[chain for _, chain in sorted(parts.items(), key=lambda part: part[0])]]
    steps: dict[int, dict[str, Chain]] = {}
    for manifest in ordered:
        steps.setdefault(manifest.level, {}).setdefault(manifest.component, []).append(manifest)
    return [list(chains.values()) for _, chains in sorted(steps.items())]


def _turn(manifest: Manifest) -> int:
    """Namespaces first, which others have rights in; then all that pods need; then definitions and their objects."""
    if manifest.kind == "Namespace":
        return 0
    return 2 if manifest.kind == "CustomResourceDefinition" or manifest.key[0].endswith(".openshift.io") else 1


def _urgency(manifest: Manifest) -> int:
    """What comes after the pivot is all that is missing then; before, it is nobody's turn."""
    if manifest.after_pivot:
        return -1
    component = manifest.component
    return next((number for number, name in enumerate(_AWAITED) if component.startswith(name)), len(_AWAITED))
