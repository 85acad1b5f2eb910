"""One revision of one operand on this node: its files first, its manifest last.

The kubelet starts what the manifest says as soon as it is there, so it comes when everything else is on the disk.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError
from falsework.files import is_draft, remove_tree, write_lasting_file
from falsework.kube.client import Client, Object
from falsework.kube.resources import CONFIG_MAPS, SECRETS
from falsework.node.folders import FILE_MODE, is_file, is_private_file, make_folder
from falsework.operators.static_pod import inputs
from falsework.operators.static_pod.mirror_pod import REVISION

Files = dict[str, bytes]

_WORD = re.compile(r"\bREVISION\b")


@dataclass(frozen=True)
class Revision:
    """One of an operand, ready to be written."""

    operand: str
    number: int
    files: Files = field(repr=False)
    """By their places in the revision's folder."""
    pod: Object
    manifest: bytes = field(repr=False)

    @classmethod
    def of(cls, operand: str, number: int, files: Files) -> Revision:
        from falsework.assets.serialize import to_yaml  # late: a start is quicker without

        pod = pod_of(operand, files, number)
        return cls(operand, number, files, pod, to_yaml(pod))


def fetch(client: Client, namespace: str, revision: int) -> Files:
    """Everything the revision is made of, by its place in the revision's folder."""
    status = client.get(CONFIG_MAPS, inputs.status_name(revision), namespace)
    if not inputs.is_finished(status):
        raise FalseworkError(f"revision {revision} in {namespace} is not complete")
    files: Files = {}
    for name in status["data"][inputs.CONFIG_MAP_NAMES].split():
        body = client.get(CONFIG_MAPS, inputs.copy_name(name, revision), namespace)
        texts = {key: text.encode() for key, text in (body.get("data") or {}).items()}
        files |= _placed(f"configmaps/{name}", texts | _decoded(body.get("binaryData")))
    for name in status["data"][inputs.SECRET_NAMES].split():
        body = client.get(SECRETS, inputs.copy_name(name, revision), namespace)
        files |= _placed(f"secrets/{name}", _decoded(body.get("data")))
    return files


def pod_of(operand: str, files: Files, revision: int) -> Object:
    """The operand's pod at this revision. The word REVISION in its texts is the number: that is how it names paths."""
    place = f"configmaps/{operand}-pod/pod.yaml"
    try:
        pod = _numbered(json.loads(files[place]), str(revision))
        pod["metadata"].setdefault("labels", {})[REVISION] = str(revision)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FalseworkError(f"{place} of revision {revision} is no pod", cause=type(error).__name__) from None
    return dict(pod)


class StaticPods:
    """Those of this node. `root` is its /etc/kubernetes."""

    def __init__(self, root: Path) -> None:
        self._resources = root / "static-pod-resources"
        self._manifests = root / "manifests"

    def has(self, revision: Revision) -> bool:
        """Whether all of it is in place."""
        folder, manifest = self._folder(revision.operand, revision.number), self._manifest(revision.operand)
        paths = {folder / name: content for name, content in revision.files.items()}
        paths[folder / manifest.name] = revision.manifest
        return all(is_file(path, content) for path, content in paths.items()) and _holds(manifest, revision)

    def put(self, revision: Revision) -> bool:
        """Whether the manifest is a new one. A right one is left as it is: its pod runs on."""
        manifest = self._manifest(revision.operand)
        try:
            folder = self._folder(revision.operand, revision.number)
            make_folder(folder, {**revision.files, manifest.name: revision.manifest})
            self._clear_drafts(manifest)
            if _holds(manifest, revision):
                return False
            write_lasting_file(manifest, revision.manifest, FILE_MODE)
        except OSError as error:
            raise FalseworkError(
                f"revision {revision.number} of {revision.operand} cannot be written",
                cause=f"{error.filename}: {error.strerror}",
            ) from None
        return True

    def prune(self, operand: str, unwanted: Callable[[list[int]], list[int]]) -> list[int]:
        """`unwanted` says which of the revisions that are here may go. Gives those that went."""
        prefix = f"{operand}-pod-"
        here = [
            int(path.name.removeprefix(prefix))
            for path in (self._resources.iterdir() if self._resources.is_dir() else ())
            if path.name.startswith(prefix) and path.name.removeprefix(prefix).isdecimal()
        ]
        gone = unwanted(here)
        for revision in gone:
            remove_tree(self._folder(operand, revision))
        return gone

    def _folder(self, operand: str, revision: int) -> Path:
        return self._resources / f"{operand}-pod-{revision}"

    def _manifest(self, operand: str) -> Path:
        return self._manifests / f"{operand}-pod.yaml"

    def _clear_drafts(self, manifest: Path) -> None:
        """What one of us that was killed has left; others' are theirs."""
        if manifest.parent.is_dir():
            for path in manifest.parent.iterdir():
                if is_draft(path.name) and path.name.startswith(f".{manifest.name}."):
                    path.unlink()


def _holds(manifest: Path, revision: Revision) -> bool:
    """Whether this pod is in it, however it is written: only another pod is a reason to start one anew."""
    if is_file(manifest, revision.manifest):
        return True
    from falsework.assets.serialize import documents_in  # late, as above

    try:
        if not is_private_file(manifest):
            return False
        return documents_in(str(manifest), manifest.read_bytes()) == (revision.pod,)
    except (OSError, FalseworkError):
        return False


def _placed(folder: str, files: Files) -> Files:
    return {f"{folder}/{key}": content for key, content in files.items()}


def _decoded(data: dict[str, str] | None) -> Files:
    return {key: base64.b64decode(text) for key, text in (data or {}).items()}


def _numbered(value: Any, number: str) -> Any:
    if isinstance(value, str):
        return _WORD.sub(number, value)
    if isinstance(value, list):
        return [_numbered(entry, number) for entry in value]
    if isinstance(value, dict):
        return {key: _numbered(entry, number) for key, entry in value.items()}
    return value
