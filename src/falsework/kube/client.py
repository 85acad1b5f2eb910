"""A thin client of the Kubernetes API. Objects are plain dictionaries, as the API has them.

One connection per thread, kept open. What may be asked twice without harm is asked once more on a new connection when
the old one broke; `429 Too Many Requests` is waited for. Everything else is the caller's to decide: the errors are
`ApiError` (the API says no) and `Unreachable` (it cannot be asked).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from falsework import __version__
from falsework.kube import access
from falsework.kube.access import Access
from falsework.kube.connection import LINE_LIMIT, Connect, Connection, Patience, connect_directly
from falsework.kube.errors import ApiError as ApiError
from falsework.kube.errors import Unreachable as Unreachable
from falsework.kube.resources import Resource

Object = dict[str, Any]

PAGE = 500
_BUSY_TRIES = 6
_LONGEST_PAUSE = 10.0
_SPARE = 15.0
"""Seconds a watch may go on after the end it was given, before the server counts as silent."""


class PatchKind(Enum):
    """The media type that says what a patch is."""

    MERGE = "application/merge-patch+json"
    APPLY = "application/apply-patch+yaml"
    JSON = "application/json-patch+json"


MERGE, APPLY, JSON = PatchKind.MERGE, PatchKind.APPLY, PatchKind.JSON


@dataclass(frozen=True)
class Listed:
    items: list[Object]
    version: str
    """What a watch goes on from."""


@dataclass(frozen=True)
class WatchEvent:
    type: str
    """ADDED, MODIFIED or DELETED; BOOKMARK where bookmarks were asked for."""
    object: Object


class Client:
    def __init__(
        self,
        access: Access,
        *,
        connect: Connect = connect_directly,
        patience: Patience | None = None,
        metadata_only: bool = False,
    ) -> None:
        self._access = access
        self._metadata_only = metadata_only
        self._connect = connect
        self._patience = patience or Patience()
        self._of_thread = threading.local()
        self._kinds: dict[tuple[str, str], Resource] = {}

    @classmethod
    def from_kubeconfig(
        cls, path: Path, *, connect: Connect = connect_directly, patience: Patience | None = None
    ) -> Client:
        return cls(access.from_kubeconfig(path), connect=connect, patience=patience)

    @classmethod
    def from_pod(cls, *, patience: Patience | None = None) -> Client:
        """As the service account of the pod this runs in."""
        return cls(access.from_pod(), patience=patience)

    def metadata_only(self) -> Client:
        """The same API; lists and watches bring nothing of their objects but the metadata."""
        return Client(self._access, connect=self._connect, patience=self._patience, metadata_only=True)

    @property
    def url(self) -> str:
        return self._access.url

    # Objects

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return self._object("GET", resource.path(namespace, name))

    def list(self, resource: Resource, namespace: str = "", labels: str = "", fields: str = "") -> Listed:
        """All of them, page by page."""
        path, query = resource.path(namespace), _selected(labels, fields)
        try:
            return self._pages(path, {**query, "limit": str(PAGE)})
        except ApiError as error:
            # The next page is of a state the API has forgotten: then all in one.
            if not error.is_gone:
                raise
            return self._pages(path, query)

    def create(self, resource: Resource, body: Object, namespace: str = "") -> Object:
        place = namespace or (str(body["metadata"].get("namespace", "")) if resource.namespaced else "")
        return self._object("POST", resource.path(place), body)

    def replace(self, resource: Resource, body: Object, subresource: str = "") -> Object:
        metadata = body["metadata"]
        place = metadata.get("namespace", "") if resource.namespaced else ""
        return self._object("PUT", resource.path(place, metadata["name"], subresource), body)

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        kind: PatchKind = MERGE,
        subresource: str = "",
        field_manager: str = "falsework",
    ) -> Object:
        """Server-side apply takes over the fields it names, whoever had them."""
        query = {"fieldManager": field_manager} | ({"force": "true"} if kind is APPLY else {})
        path = f"{resource.path(namespace, name, subresource)}?{urlencode(query)}"
        return self._object("PATCH", path, patch, content_type=kind.value, repeatable=kind is not JSON)

    def delete(self, resource: Resource, name: str, namespace: str = "", *, precondition_uid: str = "") -> None:
        """With a uid, only the very object that has it."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if precondition_uid:
            options["preconditions"] = {"uid": precondition_uid}
        # Asked again, the answer would be that it is not there; or worse, another of that name would go.
        self._object("DELETE", resource.path(namespace, name), options, repeatable=bool(precondition_uid))

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        version: str = "",
        labels: str = "",
        fields: str = "",
        seconds: int = 300,
        *,
        bookmarks: bool = False,
    ) -> Watch:
        """What changes from now on (or since `version`), until `seconds` are over. It takes this thread's connection:
        by it the list has come that most watches go on from, and another handshake would cost as much as that."""
        query = {**_selected(labels, fields), "watch": "true", "timeoutSeconds": str(seconds)}
        if version:
            query["resourceVersion"] = version
        if bookmarks:
            query["allowWatchBookmarks"] = "true"
        path = f"{resource.path(namespace)}?{urlencode(query)}"
        connection = self._taken()
        try:
            response, pieces = self._ask_for_a_stream(connection, path)
            if response.status != 200:
                raise _api_error("GET", path, response.status, connection.whole(pieces))
            connection.wait_up_to(seconds + _SPARE)
        except BaseException:
            connection.close()
            raise
        return Watch(connection, pieces, path)

    # Everything else

    def raw(self, method: str, path: str, body: Object | None = None) -> tuple[int, bytes]:
        """Any path, such as /readyz: the status and what came with it, whatever they are."""
        status, content, _ = self._ask(method, path, _encoded(body), "application/json", repeatable=method == "GET")
        return status, content

    def resource_of(self, body: Object) -> Resource:
        """Where the API has an object of this kind. Asked anew when unknown: definitions come and go."""
        key = (str(body.get("apiVersion", "")), str(body.get("kind", "")))
        if key not in self._kinds:
            self._discover(key[0])
        if key not in self._kinds:
            raise ApiError(f"the API knows no {key[1]} in {key[0]}", status=404, reason="NotFound")
        return self._kinds[key]

    def close(self) -> None:
        """This thread's connection."""
        if (connection := self._own()) is not None:
            connection.close()

    def _discover(self, api_version: str) -> None:
        group, _, version = api_version.rpartition("/")
        place = f"/apis/{group}/{version}" if group else f"/api/{version}"
        for entry in self._object("GET", place).get("resources", ()):
            if "/" not in entry["name"]:
                kind = (api_version, entry["kind"])
                self._kinds[kind] = Resource(group, version, entry["name"], entry["namespaced"])

    def _pages(self, path: str, query: dict[str, str]) -> Listed:
        items: list[Object] = []
        following: dict[str, str] = {}
        while True:
            parameters = urlencode({**query, **following})
            page = self._object("GET", f"{path}?{parameters}" if parameters else path)
            # The API leaves out of each item what the list's own kind says.
            kind = {"apiVersion": page.get("apiVersion"), "kind": str(page.get("kind", "")).removesuffix("List")}
            items += [{**kind, **item} for item in page.get("items") or ()]
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return Listed(items, str(metadata.get("resourceVersion", "")))
            following = {"continue": metadata["continue"]}

    def _object(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        repeatable: bool | None = None,
    ) -> Object:
        content = _encoded(body)
        once_more = method in ("GET", "PUT") if repeatable is None else repeatable
        for attempt in range(_BUSY_TRIES):
            status, answer, retry_after = self._ask(method, path, content, content_type, repeatable=once_more)
            busy = status == 429 or (status == 503 and once_more and retry_after is not None)
            if not busy or attempt == _BUSY_TRIES - 1:
                break
            time.sleep(min(retry_after if retry_after is not None else 1.0, _LONGEST_PAUSE))
        if not 200 <= status < 300:
            raise _api_error(method, path, status, answer, retry_after)
        return _decoded(answer, self.url)

    def _ask(
        self, method: str, path: str, body: bytes | None, content_type: str, *, repeatable: bool
    ) -> tuple[int, bytes, float | None]:
        connection = self._own() or self._new()
        connection.drop_if_stale()
        headers = self._headers() | ({"Content-Type": content_type} if body is not None else {})
        was_fresh = connection.is_fresh
        try:
            response, pieces = connection.ask(method, path, body, headers)
            return response.status, connection.whole(pieces), _seconds(response.getheader("Retry-After"))
        except Unreachable:
            if was_fresh or not repeatable:
                raise
        response, pieces = connection.ask(method, path, body, headers)
        return response.status, connection.whole(pieces), _seconds(response.getheader("Retry-After"))

    def _ask_for_a_stream(self, connection: Connection, path: str) -> tuple[HTTPResponse, Iterator[bytes]]:
        connection.drop_if_stale()
        was_fresh = connection.is_fresh
        headers = self._headers("PartialObjectMetadata")
        try:
            return connection.ask("GET", path, None, headers)
        except Unreachable:
            if was_fresh:
                raise
        return connection.ask("GET", path, None, headers)

    def _headers(self, kind: str = "PartialObjectMetadataList") -> dict[str, str]:
        accept = f"application/json;as={kind};g=meta.k8s.io;v=v1" if self._metadata_only else "application/json"
        headers = {"Accept": accept, "User-Agent": f"falsework/{__version__}"}
        if token := self._access.bearer():
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _own(self) -> Connection | None:
        return getattr(self._of_thread, "connection", None)

    def _taken(self) -> Connection:
        """For somebody who keeps it: this thread's next question goes by a new one."""
        connection = self._own() or self._new()
        del self._of_thread.connection
        return connection

    def _new(self) -> Connection:
        connection = self._of_thread.connection = Connection(self._access, self._connect, self._patience)
        return connection


class Watch(Iterator[WatchEvent]):
    """Changes as they come. `close` ends it, from any thread."""

    def __init__(self, connection: Connection, pieces: Iterator[bytes], path: str) -> None:
        self._connection = connection
        self._events = self._read(pieces, path)
        self._closed = False

    def __next__(self) -> WatchEvent:
        try:
            return next(self._events)
        except Unreachable:
            if self._closed:
                raise StopIteration from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._connection.close()

    def close(self) -> None:
        self._closed = True
        self._connection.break_off()

    def _read(self, pieces: Iterator[bytes], path: str) -> Iterator[WatchEvent]:
        try:
            for line in _lines(pieces):
                event = _decoded(line, path)
                what, body = event.get("type"), event.get("object")
                if not isinstance(what, str) or not isinstance(body, dict):
                    raise Unreachable(f"{path} answers with something that is no event")
                if what == "ERROR":
                    raise _status_error("GET", path, int(body.get("code") or 500), body)
                yield WatchEvent(what, body)
        finally:
            self._connection.close()


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines. What a connection that broke left of one is nothing."""
    parts: list[bytes] = []
    length = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        parts.append(first)
        length += len(first)
        if length > LINE_LIMIT:
            raise Unreachable("the API's watch does not answer", cause="a line without end")
        for other in others:
            if line := b"".join(parts).strip():
                yield line
            parts, length = [other], len(other)


def _selected(labels: str, fields: str) -> dict[str, str]:
    return {**({"labelSelector": labels} if labels else {}), **({"fieldSelector": fields} if fields else {})}


def _encoded(body: Any) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def _decoded(content: bytes, where: str) -> Object:
    try:
        decoded = json.loads(content)
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise Unreachable(f"{where} does not answer as an API", cause="what it says is not a JSON object")
    return decoded


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def _api_error(method: str, path: str, status: int, content: bytes, retry_after: float | None = None) -> ApiError:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and body.get("kind") == "Status":
        return _status_error(method, path, status, body, retry_after)
    said = content[:200].decode(errors="replace").strip()
    return ApiError(
        f"{method} {path.partition('?')[0]}: {status}", status=status, cause=said or None, retry_after=retry_after
    )


def _status_error(method: str, path: str, status: int, body: Object, retry_after: float | None = None) -> ApiError:
    reason = str(body.get("reason") or "")
    return ApiError(
        f"{method} {path.partition('?')[0]}: {status} {reason}".rstrip(),
        status=status,
        reason=reason,
        cause=str(body.get("message") or "") or None,
        retry_after=retry_after,
    )
