"""Controllers at work: what wakes them, and what becomes of failures."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from falsework.errors import FalseworkError
from falsework.operators.runtime import controller as module
from falsework.operators.runtime.controller import LASTING, Controller, Worker
from falsework.operators.runtime.log import Log


class Scene:
    """A worker whose syncs are written down, and told."""

    def __init__(self, sync: Callable[[str], float | None], **rest: object) -> None:
        self.seen: list[str] = []
        self.told: list[dict[str, str]] = []
        self.log: list[str] = []
        self.now = 0.0
        self.changed = threading.Condition()
        self._sync = sync
        controller = Controller("TestController", self.sync, **rest)  # type: ignore[arg-type]
        self.worker = Worker(controller, Log("test", write=self.log.append), self.tell, clock=lambda: self.now)

    def sync(self, key: str) -> float | None:
        with self.changed:
            self.seen.append(key)
            self.changed.notify_all()
        return self._sync(key)

    def tell(self, lasting: dict[str, str]) -> None:
        with self.changed:
            self.told.append(lasting)
            self.changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, 60)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self.worker.start()
        try:
            yield
        finally:
            self.worker.stop()
            assert self.worker.join(60)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.02)


def test_it_looks_when_it_starts_when_woken_and_when_it_wanted_to() -> None:
    again = [0.01]
    scene = Scene(lambda _: again.pop() if again else None)
    with scene.at_work():
        scene.wait(lambda: scene.seen == ["", ""])
        scene.worker.wake("name")
        scene.wait(lambda: scene.seen == ["", "", "name"])
    assert scene.told[0] == {}
    assert (scene.worker.count.syncs, scene.worker.count.failures) == (3, 0)
    assert scene.log == []


def test_its_own_keys_come_again_with_every_resync() -> None:
    scene = Scene(lambda _: None, all_keys=lambda: ("one", "two"), resync=0.05)
    with scene.at_work():
        scene.wait(lambda: len(scene.seen) == 2)
        # The queue waits by the real clock; whether a resync is due is asked of this one.
        scene.now = 1.0
        scene.wait(lambda: scene.seen == ["one", "two", "one", "two"])


def test_a_failure_is_tried_again_and_told_when_it_lasts() -> None:
    well = threading.Event()

    def sync(_: str) -> None:
        if not well.is_set():
            raise FalseworkError("no luck", cause="it rains")

    scene = Scene(sync)
    with scene.at_work():
        scene.wait(lambda: len(scene.seen) >= 3)
        assert {"": "no luck: it rains"} not in scene.told
        scene.now = LASTING
        scene.wait(lambda: {"": "no luck: it rains"} in scene.told)
        well.set()
        scene.wait(lambda: scene.told[-1] == {})
    (line,) = map(json.loads, scene.log)
    assert (line["level"], line["msg"]) == ("warning", "Could not finish: no luck: it rains")


def test_one_key_that_fails_keeps_no_other_from_being_looked_at() -> None:
    def sync(key: str) -> None:
        if key == "bad":
            raise FalseworkError("bad")

    scene = Scene(sync, all_keys=lambda: ("bad", "good"))
    with scene.at_work():
        scene.wait(lambda: "good" in scene.seen and scene.seen.count("bad") >= 3)
        assert scene.seen.count("good") == 1


def test_a_mistake_in_a_controller_is_a_failure_whose_text_is_not_repeated() -> None:
    def sync(_: str) -> None:
        raise KeyError("the secret itself")

    def keys() -> list[str]:
        raise ValueError("the secret itself")

    scene = Scene(sync, all_keys=keys)
    with scene.at_work():
        scene.worker.wake("")
        scene.wait(lambda: len(scene.seen) >= 2)
        scene.now = LASTING
        scene.wait(lambda: any(scene.told))
    told = str(scene.log) + str(scene.told)
    assert f"KeyError at {__file__}:" in told
    assert "ValueError at" in told
    assert "the secret itself" not in told


def test_what_cannot_be_told_now_is_told_with_the_next_sync() -> None:
    scene = Scene(lambda _: None)
    told: list[dict[str, str]] = []

    def refuse_once(lasting: dict[str, str]) -> None:
        told.append(lasting)
        if len(told) == 1:
            raise FalseworkError("no API")

    scene.worker._told = refuse_once
    with scene.at_work():
        scene.wait(lambda: len(scene.seen) == 1)
        scene.worker.wake("again")
        scene.wait(lambda: len(scene.seen) == 2)
    assert told == [{}, {}]


def test_it_is_busy_while_it_is_in_a_sync_and_ends_after_it() -> None:
    go_on, inside = threading.Event(), threading.Event()

    def sync(_: str) -> None:
        inside.set()
        go_on.wait(60)

    scene = Scene(sync)
    scene.worker.start()
    assert inside.wait(60)
    assert busy_since(scene) == 0.0
    scene.worker.wake("never looked at")
    scene.worker.stop()
    assert not scene.worker.join(0.01)
    go_on.set()
    assert scene.worker.join(60)
    assert busy_since(scene) is None
    assert scene.seen == [""]
    assert scene.worker.waiting == 1


def busy_since(scene: Scene) -> float | None:
    return scene.worker.busy_since
