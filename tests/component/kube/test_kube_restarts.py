"""The client and the informer when the API goes away and comes back: an API of its own, which is stopped."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_api import RealApi

from eventually import PATIENCE, eventually
from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Unreachable, WatchEvent
from falsework.kube.connection import connect_directly
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, NAMESPACES
from falsework.release.inventory import Release


@pytest.fixture(scope="module")
def api(release: Release, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    with RealApi.in_folder(release, programs, tmp_path_factory.mktemp("restarted-api")) as api:
        api.client().create(NAMESPACES, {"metadata": {"name": "space"}})
        yield api


def put(client: Client, name: str) -> None:
    client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "space")


def test_a_watch_tells_that_the_api_went_away(api: RealApi) -> None:
    client = api.client()
    watch = client.watch(CONFIG_MAPS, "space", client.list(CONFIG_MAPS, "space").version)
    put(client, "before")
    assert next(watch).object["metadata"]["name"] == "before"
    api.kill("kube-apiserver")
    with pytest.raises(Unreachable):
        next(watch)
    with pytest.raises(Unreachable):
        put(client, "lost")
    api.start_apiserver()
    # The old connection is gone: that is no reason for an error.
    assert client.get(CONFIG_MAPS, "before", "space")


def test_an_informer_misses_nothing(api: RealApi) -> None:
    client = api.client()
    put(client, "goes")
    events: list[tuple[str, str]] = []
    troubles: list[FalseworkError] = []

    def note(event: WatchEvent) -> None:
        events.append((event.type, event.object["metadata"]["name"]))

    informer = Informer(client, CONFIG_MAPS, note, namespace="space", on_trouble=troubles.append).start()
    try:
        assert informer.wait_synced(PATIENCE)
        assert ("ADDED", "goes") in events
        put(client, "first")
        eventually(lambda: ("ADDED", "first") in events)
        for way in (api.kill, api.stop):
            way("kube-apiserver")
            api.start_apiserver()
            name = f"after-{way.__name__}"
            put(client, name)
            eventually(lambda name=name: ("ADDED", name) in events)  # type: ignore[misc]
        assert troubles
        client.delete(CONFIG_MAPS, "goes", "space")
        eventually(lambda: ("DELETED", "goes") in events)
        assert informer.get("goes", "space") is None
        assert informer.get("first", "space")
        assert len(events) == len(set(events)), "nothing is told twice"
    finally:
        began = time.monotonic()
        informer.stop()
        assert time.monotonic() - began < PATIENCE


def test_an_informer_notices_what_happened_while_it_could_not_look(api: RealApi) -> None:
    """The place it stopped at is forgotten: it lists again and finds the differences."""
    cut_off = threading.Event()

    def connect(host: str, port: int, seconds: float) -> socket.socket:
        if cut_off.is_set():
            raise ConnectionRefusedError
        return connect_directly(host, port, seconds)

    client = api.client()
    put(client, "old")
    events: list[tuple[str, str]] = []
    troubles: list[FalseworkError] = []
    informer = Informer(
        Client.from_kubeconfig(api.kubeconfig, connect=connect),
        CONFIG_MAPS,
        lambda event: events.append((event.type, event.object["metadata"]["name"])),
        namespace="space",
        on_trouble=troubles.append,
    ).start()
    try:
        assert informer.wait_synced(PATIENCE)
        cut_off.set()
        api.kill("kube-apiserver")
        api.start_apiserver()
        place = client.list(CONFIG_MAPS, "space").version
        client.delete(CONFIG_MAPS, "old", "space")
        put(client, "new")
        # It remembers no more than what happened since it was started.
        api.kill("kube-apiserver")
        api.start_apiserver()
        with pytest.raises(ApiError) as caught:
            next(client.watch(CONFIG_MAPS, "space", place))
        assert caught.value.is_gone
        cut_off.clear()
        eventually(lambda: {("DELETED", "old"), ("ADDED", "new")} <= set(events))
        assert any(isinstance(trouble, ApiError) and trouble.is_gone for trouble in troubles)
    finally:
        informer.stop()
