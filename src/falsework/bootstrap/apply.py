"""Creating the cluster's first objects, as OpenShift's cluster-bootstrap does it.

Manifests come in any order and need each other: an object needs its definition and its namespace. So they are tried in
the order of their paths, again and again, until none is missing. What exists already is left as it is.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from falsework.assets.serialize import documents_in
from falsework.errors import FalseworkError
from falsework.kube.client import APPLY, ApiError, Client, Object, Unreachable
from falsework.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

SUFFIXES = (".yaml", ".yml", ".json")
MANAGER = "cluster-bootstrap"
NUDGED = "falsework.io/nudged"

_PAUSE = 0.2
_FIRST = ("99_falsework_node-rbac.", "0000_00_cluster-version-operator_", "cvo-overrides.")
"""How the files begin that let machines in, and make the version operator start its work."""
_HURRY = 2.0
_HURRIED_PAUSE = 0.02
"""A definition is in use a moment after it is made."""
_PATIENT_PAUSE = 2.0
_PATIENT_AFTER = 60.0
"""Seconds without any progress, after which nobody is served by five tries a second."""
_STUCK = 3.0
_NUDGE = 5.0
"""Seconds without progress before definitions are looked at, and between two looks."""
_REMIND = 10.0
_NAMED = 5


@dataclass(frozen=True)
class Missing:
    """An object that is not there yet, or a file that cannot be read."""

    file: str
    what: str
    why: str

    def __str__(self) -> str:
        return f'"{self.file}" {self.what}: {self.why}' if self.what else f'"{self.file}": {self.why}'


@dataclass
class _Entry:
    """One object of a file, or a whole file that could not be read yet."""

    path: Path
    body: Object | None = None
    why: str = ""

    def missing(self) -> Missing:
        return Missing(self.path.name, _called(self.body) if self.body is not None else "", self.why or "not tried yet")


def apply_all(
    client: Client,
    folder: Path,
    say: Callable[[str], None],
    marker: Path | None = None,
    *,
    stop: threading.Event | None = None,
    on_missing: Callable[[Sequence[Missing]], None] = lambda _: None,
) -> list[Missing]:
    """Until none is missing, or until told to stop; gives back what still is.

    `marker` is a file that is there once all of them are; `on_missing` is told after every round in which something
    changed.
    """
    stop = stop or threading.Event()
    log = _Log(say)
    waiting = [_Entry(path) for path in manifest_files(folder)]
    total, told = len(waiting), None
    waiting = _hurry(client, waiting, log, stop)
    progressed, nudged = time.monotonic(), 0.0
    while waiting and not stop.is_set():
        before = len(waiting)
        waiting = _round(client, waiting, log, stop)
        if len(waiting) != before:
            progressed = time.monotonic()
        missing = [entry.missing() for entry in waiting]
        if missing != told:
            on_missing(missing)
            told = missing
        if not waiting:
            break
        log.remind(missing)
        still = time.monotonic() - progressed
        if still > _STUCK and time.monotonic() - nudged > _NUDGE:
            _nudge_definitions(client, log)
            nudged = time.monotonic()
        patient = still > _PATIENT_AFTER
        stop.wait(_PATIENT_PAUSE if patient else _PAUSE)
    if not waiting:
        say(f"All {total} manifests of {folder} are in the cluster.")
        if marker is not None:
            marker.touch()
    return [entry.missing() for entry in waiting]


def _hurry(client: Client, entries: list[_Entry], log: _Log, stop: threading.Event) -> list[_Entry]:
    """What machines and the version operator wait for, before all others. What is still missing."""
    first = [entry for name in _FIRST for entry in entries if entry.path.name.startswith(name)]
    others = [entry for entry in entries if not entry.path.name.startswith(_FIRST)]
    deadline = time.monotonic() + _HURRY
    while first and time.monotonic() < deadline:
        first = _round(client, first, log, stop)
        if first and stop.wait(_HURRIED_PAUSE):
            break
    return [*first, *others]


def _nudge_definitions(client: Client, log: _Log) -> None:
    """An API server that ended between accepting a definition's names and putting it into use leaves it so for minutes:
    the next one takes it up only when the definition changes. So it is changed."""
    with contextlib.suppress(FalseworkError):
        for item in client.list(CUSTOM_RESOURCE_DEFINITIONS).items:
            said = {entry["type"]: entry["status"] for entry in (item.get("status") or {}).get("conditions") or ()}
            if said.get("NamesAccepted") == "True" and said.get("Established") != "True":
                name = item["metadata"]["name"]
                annotations = {NUDGED: datetime.now(UTC).isoformat()}
                client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"metadata": {"annotations": annotations}})
                log.say(f"The definition {name} is accepted and not in use: changed, so that the API looks at it again")


def manifest_files(folder: Path) -> list[Path]:
    """In the order in which they are created. What somebody is still writing is hidden."""
    found = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and not path.name.startswith("."))
    return sorted(path for path in found if path.is_file())


def _round(client: Client, waiting: list[_Entry], log: _Log, stop: threading.Event) -> list[_Entry]:
    """Each one once; what is still missing afterwards."""
    left: list[_Entry] = []
    todo = list(waiting)
    while todo:
        entry = todo.pop(0)
        if stop.is_set():
            return [*left, entry, *todo]
        try:
            if entry.body is None:
                todo = [*_read(entry.path), *todo]
            else:
                _create(client, entry.path.name, entry.body, log)
        except Unreachable as error:
            # The next one would be told the same.
            for other in (entry, *todo):
                other.why = "the API cannot be reached"
            log.trouble(f"The API cannot be reached: {error.cause or error.what}")
            return [*left, entry, *todo]
        except FalseworkError as error:
            entry.why = error.cause or error.what
            log.failed(entry.missing())
            left.append(entry)
    log.reached()
    return left


def _read(path: Path) -> list[_Entry]:
    """Read again in every round while it cannot be: somebody may be putting it right."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FalseworkError(f"{path} cannot be read", cause=error.strerror) from None
    try:
        return [_Entry(path, body) for body in documents_in(path.name, content)]
    except FalseworkError as error:
        raise FalseworkError(error.what, cause=error.what) from None


def _create(client: Client, file: str, body: Object, log: _Log) -> None:
    name = (body.get("metadata") or {}).get("name")
    if not name:
        raise FalseworkError("it has no name")
    try:
        resource = client.resource_of(body)
    except ApiError as error:
        if not error.is_missing:
            raise
        known = f"no matches for kind {body.get('kind')} in {body.get('apiVersion')}"
        raise FalseworkError(f"unable to get REST mapping: {known}") from None
    namespace = str(body["metadata"].get("namespace") or "default") if resource.namespaced else ""
    called = _spelled(resource, str(name), namespace)
    live = _live(client, resource, str(name), namespace)
    if live is None:
        # Applied, not posted: for two seconds after a definition came, the API holds back every post of its objects.
        body = {**body, "metadata": {**body["metadata"], **({"namespace": namespace} if namespace else {})}}
        live = client.patch(resource, str(name), body, namespace, kind=APPLY, field_manager=MANAGER)
        log.say(f'Created "{file}" {called}')
    else:
        log.say(f'Skipped "{file}" {called} as it already exists')
    # What a person wrote as status is lost at creation, where status is a part of its own.
    if body.get("status") and not live.get("status"):
        client.replace(resource, {**live, "status": body["status"]}, subresource="status")
        log.say(f'Updated status for "{file}" {called}')


def _live(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return client.get(resource, name, namespace)
    except ApiError as error:
        if not error.is_missing:
            raise
        return None


def _spelled(resource: Resource, name: str, namespace: str) -> str:
    where = f" -n {namespace}" if namespace else ""
    return f"{resource.plural}.{resource.version}.{resource.group}/{name}{where}"


def _called(body: Object) -> str:
    metadata = body.get("metadata") or {}
    where = f" -n {metadata['namespace']}" if metadata.get("namespace") else ""
    return f"{body.get('kind')}/{metadata.get('name', '')}{where}"


class _Log:
    """Says a thing when it is new: rounds come five times a second."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._told: dict[tuple[str, str], str] = {}
        self._trouble = ""
        self._reminded = time.monotonic()

    def failed(self, missing: Missing) -> None:
        key = (missing.file, missing.what)
        if self._told.get(key) != missing.why:
            self._told[key] = missing.why
            self.say(f"Failed to create {missing}")

    def trouble(self, text: str) -> None:
        if self._trouble != text:
            self._trouble = text
            self.say(text)

    def reached(self) -> None:
        if self._trouble:
            self._trouble = ""
            self.say("The API can be reached again.")

    def remind(self, missing: Sequence[Missing]) -> None:
        if time.monotonic() - self._reminded < _REMIND:
            return
        self._reminded = time.monotonic()
        shown = "; ".join(str(one) for one in missing[:_NAMED])
        more = f"; and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        self.say(f"Failed to create some manifests, {len(missing)} are missing: {shown}{more}")
