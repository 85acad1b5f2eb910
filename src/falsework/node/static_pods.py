"""One revision of one operand on this node: its files first, its manifest last.

The kubelet starts what the manifest says as soon as it is there, so it comes when everything else is on the disk.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError
from falsework.files import is_draft, remove_tree, sync_folder, write_file
from falsework.kube.client import Client, Object
from falsework.kube.resources import CONFIG_MAPS, SECRETS
from falsework.node.folders import FILE_MODE, is_file, make_folder
from falsework.operators.static_pod import inputs
from falsework.operators.static_pod.mirror_pod import REVISION

Files = dict[str, bytes]

_WORD = re.compile(r"\bREVISION\b")


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

    def is_in_place(self, operand: str, revision: int, files: Files) -> bool:
        folder, manifest = self._folder(operand, revision), self._manifest(operand)
        paths = {folder / name: content for name, content in files.items()}
        if not all(is_file(path, content) for path, content in paths.items()):
            return False
        return _holds(folder / manifest.name, pod := pod_of(operand, files, revision)) and _holds(manifest, pod)

    def put(self, operand: str, revision: int, files: Files) -> bool:
        """Whether the manifest is a new one. A right one is left as it is: its pod runs on."""
        from falsework.assets.serialize import to_yaml  # late: a start is quicker without

        manifest = self._manifest(operand)
        pod = pod_of(operand, files, revision)
        content = to_yaml(pod)
        try:
            make_folder(self._folder(operand, revision), {**files, manifest.name: content})
            self._clear_drafts(manifest)
            if _holds(manifest, pod):
                return False
            write_file(manifest, content, FILE_MODE)
            sync_folder(manifest.parent)
        except OSError as error:
            raise FalseworkError(
                f"revision {revision} of {operand} cannot be written", cause=f"{error.filename}: {error.strerror}"
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


def _holds(manifest: Path, pod: Object) -> bool:
    """Whether this pod is in it, however it is written: only another pod is a reason to start one anew."""
    import yaml  # late, as above

    try:
        status = os.lstat(manifest)
        return status.st_mode == 0o100000 | FILE_MODE and yaml.safe_load(manifest.read_bytes()) == pod
    except (OSError, yaml.YAMLError):
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
