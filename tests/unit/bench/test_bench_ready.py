from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Self, cast

import pytest
import ready
from ready import AllReady, is_ready

from falsework.errors import FalseworkError
from falsework.kube.client import Client, Listed, Object, WatchEvent
from falsework.kube.resources import NODES


def node(name: str, status: str) -> Object:
    conditions = [{"type": "Ready", "status": status}]
    return {"metadata": {"name": name, "resourceVersion": "1"}, "status": {"conditions": conditions}}


class ToldClient:
    """An API with two nodes, which then tells of what it is given."""

    def __init__(self, *events: WatchEvent) -> None:
        self._events = events
        self.has_told = threading.Event()
        self._closed = threading.Event()

    def list(self, *_: Any) -> Listed:
        return Listed([node("a", "True"), node("b", "False")], "1")

    def watch(self, *_: Any, **__: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closed.set()

    def __iter__(self) -> Iterator[WatchEvent]:
        yield from self._events
        self.has_told.set()
        self._closed.wait()


def all_ready(wanted: int, client: ToldClient) -> AllReady:
    return AllReady(cast(Client, client), NODES, wanted)


def test_reached_when_all_there_are_are_ready() -> None:
    with all_ready(2, ToldClient(WatchEvent("MODIFIED", node("b", "True")))) as nodes:
        assert nodes.wait() > 0


def test_not_before_as_many_are_there_as_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "_PATIENCE", 0.1)
    client = ToldClient(WatchEvent("MODIFIED", node("b", "True")))
    with all_ready(3, client) as nodes:
        assert client.has_told.wait(60)
        with pytest.raises(FalseworkError, match="of 3 nodes, 2 are there and 2 are Ready"):
            nodes.wait()


def test_ready_is_what_the_condition_says() -> None:
    assert is_ready(node("a", "True"))
    assert not is_ready(node("a", "Unknown"))
    assert not is_ready({"metadata": {}})
