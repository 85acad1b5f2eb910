"""Knowing all objects of a kind, now and as they change, whatever happens to the API meanwhile.

The list comes first, then what changed since. A connection that broke is made again and goes on where it ended; when
the API has forgotten that place, the list is read again and compared with what is known, so that no change is missed,
deletions neither.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Listed, Object, Unreachable, Watch, WatchEvent
from falsework.kube.resources import Resource

Key = tuple[str, str]
"""Namespace and name."""

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_WATCH_SECONDS = 600, 900
"""At least and at most, so that not all are made anew at once; each costs both sides a handshake. A server that is gone
is noticed by its silence, long before."""


def key_of(body: Object) -> Key:
    metadata = body.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def version_of(body: Object) -> str:
    return str((body.get("metadata") or {}).get("resourceVersion") or "")


class Informer:
    """`on_event`, and whoever else listens, is called in one thread, in the order of events: ADDED, MODIFIED and
    DELETED; the first list is ADDED events. `keep` says what of an object is remembered: its metadata, and what else.
    `on_trouble` is told why the API cannot be followed, once for every try."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        on_event: Callable[[WatchEvent], None] | None = None,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        keep: Callable[[Object], Object] = lambda body: body,
        on_trouble: Callable[[FalseworkError], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._listeners = [on_event] if on_event is not None else []
        self._where = (namespace, labels, fields)
        self._keep = keep
        self._on_trouble = on_trouble
        self._known: dict[Key, Object] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._watch: Watch | None = None
        self._thread: threading.Thread | None = None

    def listen(self, listener: Callable[[WatchEvent], None]) -> None:
        """Before it is started. For what is quick: all listeners are called in its one thread."""
        self._listeners.append(listener)

    def start(self) -> Informer:
        """At work, in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name=f"follow {self._resource.plural}", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stopping.set()
        with self._lock:
            if self._watch is not None:
                self._watch.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def wait_synced(self, seconds: float | None = None) -> bool:
        """Whether the first list has been read, and all of it handed on."""
        return self._synced.wait(seconds)

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    def objects(self) -> list[Object]:
        with self._lock:
            return list(self._known.values())

    def get(self, name: str, namespace: str = "") -> Object | None:
        with self._lock:
            return self._known.get((namespace, name))

    def run(self) -> None:
        """Until `stop`. What a listener raises ends it."""
        for event in self._events():
            self._remember(event)
            self._tell(event)

    def _tell(self, event: WatchEvent) -> None:
        for listener in self._listeners:
            listener(event)

    def _events(self) -> Iterator[WatchEvent]:
        version, pause = "", _FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                if not version:
                    listed = self._client.list(self._resource, *self._where)
                    yield from self._differences(listed)
                    version = listed.version
                    self._synced.set()
                with self._watching(version) as watch:
                    for event in watch:
                        version, pause = version_of(event.object) or version, _FIRST_PAUSE
                        if event.type != "BOOKMARK":
                            yield event
                # The end that was agreed upon; one that comes at once was not.
                trouble: FalseworkError | None = None
            except ApiError as error:
                # It has forgotten the place (410), or never knew it (another etcd): from the beginning.
                version, trouble = "", error
            except Unreachable as error:
                trouble = error
            if time.monotonic() - began > _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            if trouble is not None and not self._stopping.is_set():
                self._on_trouble(trouble)
            self._stopping.wait(pause * random.uniform(0.7, 1.3))  # noqa: S311 - so that not all come back at once
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _differences(self, listed: Listed) -> Iterator[WatchEvent]:
        """Between what is known and what there is."""
        present = {key_of(item): item for item in listed.items}
        known = {key: version_of(body) for key, body in self._known.items()}
        for key in known.keys() - present.keys():
            yield WatchEvent("DELETED", self._known[key])
        for key, item in present.items():
            if known.get(key) != version_of(item):
                yield WatchEvent("MODIFIED" if key in known else "ADDED", item)

    @contextlib.contextmanager
    def _watching(self, version: str) -> Iterator[Watch]:
        namespace, labels, fields = self._where
        seconds = random.randint(*_WATCH_SECONDS)  # noqa: S311 - nobody has to guess it
        with self._client.watch(self._resource, namespace, version, labels, fields, seconds, bookmarks=True) as watch:
            with self._lock:
                self._watch = watch
            if self._stopping.is_set():
                watch.close()
            yield watch

    def _remember(self, event: WatchEvent) -> None:
        with self._lock:
            if event.type == "DELETED":
                self._known.pop(key_of(event.object), None)
            else:
                self._known[key_of(event.object)] = self._keep(event.object)
