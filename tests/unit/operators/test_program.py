"""A program's shared following, its log, its health and its status, without an API."""

from __future__ import annotations

import json
import re
import threading
import time
from http import HTTPStatus
from typing import Any, cast

import pytest

from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, ETCDS, SECRETS
from falsework.operators.runtime import events as events_module
from falsework.operators.runtime.conditions import condition
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.events import Events
from falsework.operators.runtime.health import Health
from falsework.operators.runtime.log import Log
from falsework.operators.runtime.operator_status import OperatorStatus
from falsework.operators.runtime.options import parsed_options
from falsework.operators.runtime.program import HANGS, Program, whole


class OneObject:
    """An API with one object, which refuses what was made of an older version. Counts what it is asked."""

    def __init__(self) -> None:
        self.body: Object = {"metadata": {"name": "cluster", "resourceVersion": "1"}, "status": {}}
        self.reads = self.writes = 0
        self.meanwhile: list[Object] = []
        """Statuses that somebody else writes first."""

    def get(self, *_: object) -> Object:
        self.reads += 1
        return self.body

    def replace(self, _resource: object, body: Object, _subresource: str) -> Object:
        self.writes += 1
        if self.meanwhile:
            self.change(self.meanwhile.pop())
        if body["metadata"]["resourceVersion"] != self.body["metadata"]["resourceVersion"]:
            raise ApiError("conflict", status=409)
        return self.change(body["status"])

    def change(self, status: Object) -> Object:
        version = str(int(self.body["metadata"]["resourceVersion"]) + 1)
        self.body = {"metadata": {"name": "cluster", "resourceVersion": version}, "status": status}
        return self.body


@pytest.fixture
def api() -> OneObject:
    return OneObject()


@pytest.fixture
def status(api: OneObject) -> OperatorStatus:
    return OperatorStatus(cast("Client", api), ETCDS)


def kinds(body: Object) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in body["status"]["conditions"]}


def test_a_status_is_written_when_it_changes(api: OneObject, status: OperatorStatus) -> None:
    status.set(condition("A", True), condition("B", False))
    status.set(condition("A", True))
    assert (api.reads, api.writes) == (1, 1)
    status.set(condition("B", True))
    assert (api.reads, api.writes) == (1, 2)
    assert kinds(api.body) == {"A": "True", "B": "True"}


def test_who_was_quicker_is_respected(api: OneObject, status: OperatorStatus) -> None:
    api.meanwhile = [{"conditions": [], "latestAvailableRevision": 7}]
    body = status.update(lambda old: {**old, "mine": True})
    assert body["status"] == {"conditions": [], "latestAvailableRevision": 7, "mine": True}
    assert (api.reads, api.writes) == (2, 2)
    api.meanwhile = [{"number": number} for number in range(20)]
    with pytest.raises(FalseworkError, match="too quickly"):
        status.update(lambda old: {**old, "mine": "as well"})


def test_what_the_watch_brings_is_used_if_it_is_newer(api: OneObject, status: OperatorStatus) -> None:
    old = api.body
    status.set(condition("A", True))
    status.noticed(WatchEvent("MODIFIED", old))
    status.set(condition("B", True))
    assert (api.reads, api.writes) == (1, 2)
    status.noticed(WatchEvent("MODIFIED", api.change({"other": 1})))
    status.noticed(WatchEvent("MODIFIED", {"metadata": {"name": "another", "resourceVersion": "99"}}))
    assert status.update(lambda known: known)["status"] == {"other": 1}
    assert (api.reads, api.writes) == (1, 2)


def test_a_change_cannot_spoil_what_is_shared(api: OneObject, status: OperatorStatus) -> None:
    status.set(condition("A", True))

    def change(old: Object) -> Object:
        old["conditions"].clear()
        raise FalseworkError("not after all")

    with pytest.raises(FalseworkError):
        status.update(change)
    assert kinds(status.update(lambda old: old)) == {"A": "True"}


def program(status: OperatorStatus | None = None) -> tuple[Program, list[str]]:
    lines: list[str] = []
    log = Log("test-operator", write=lines.append)
    client = cast("Client", None)
    return Program("test-operator", "here", client, log, Events(client, "x", "here", log), "1", {}, status), lines


def tell(informer: Informer, event: WatchEvent) -> None:
    informer._tell(event)


def test_the_same_is_followed_once() -> None:
    one, _ = program()
    informer = one.follow(CONFIG_MAPS, "here")
    assert one.follow(CONFIG_MAPS, "here", keep=whole) is informer
    assert one.follow(CONFIG_MAPS, "there") is not informer
    assert one.follow(SECRETS, "here") is not informer


def test_whoever_is_concerned_is_woken_and_a_mistake_wakes_nobody_up_for_good() -> None:
    one, lines = program()
    informer = one.follow(CONFIG_MAPS)

    def name(event: WatchEvent) -> str | None:
        return cast("str", event.object["metadata"]["name"]) if event.type != "DELETED" else None

    one.add(Controller("Names", lambda _: None, [(informer, name)]))
    one.add(Controller("All", lambda _: None, [(informer, lambda _: "")]))
    tell(informer, WatchEvent("ADDED", {}))
    tell(informer, WatchEvent("ADDED", {"metadata": {"name": "a"}}))
    tell(informer, WatchEvent("ADDED", {"metadata": {"name": "b"}}))
    tell(informer, WatchEvent("DELETED", {"metadata": {"name": "c"}}))
    assert [worker.waiting for worker in one.workers] == [2, 1]
    (line,) = map(json.loads, lines)
    assert (line["level"], line["controller"]) == ("error", "Names")
    assert "KeyError at" in line["msg"]


def test_a_degraded_controller_says_so_and_one_that_never_was_says_nothing(
    api: OneObject, status: OperatorStatus
) -> None:
    one, _ = program(status)
    controller = Controller("SomeController", lambda _: None)
    one._degraded(controller, {})
    assert api.writes == 0
    one._degraded(controller, {"b": "worse", "a": "bad", "": "all of it"})
    (said,) = api.body["status"]["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("SomeControllerDegraded", "True", "SyncError")
    assert said["message"] == "all of it\na: bad\nb: worse"
    one._degraded(controller, {})
    assert kinds(api.body) == {"SomeControllerDegraded": "False"}
    program()[0]._degraded(controller, {"": "nobody to tell"})


def test_health_is_lost_when_a_controller_hangs() -> None:
    one, _ = program()
    one.add(Controller("Busy", lambda _: None))
    health = Health(one, lambda: False, "127.0.0.1", 0)
    health.start()
    try:
        assert health.answer("/healthz?verbose") == (HTTPStatus.OK, "ok\n")
        one.workers[0].busy_since = time.monotonic() - HANGS - 1
        code, text = health.answer("/healthz")
        assert code == HTTPStatus.INTERNAL_SERVER_ERROR
        assert re.fullmatch(r"Busy has been busy for 3\d\d s\n", text)
        metrics = health.answer("/metrics")[1]
        assert 'falsework_controller_queue_depth{controller="Busy"} 0\n' in metrics
        assert "falsework_leader 0\n" in metrics
        values: dict[str, float] = {}
        for line in metrics.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        assert values["process_resident_memory_bytes"] > 1e6
        with pytest.raises(FalseworkError, match="cannot be listened on"):
            Health(one, lambda: False, "127.0.0.1", health.port)
    finally:
        health.stop()


def test_a_line_of_the_log() -> None:
    lines: list[str] = []
    Log("etcd-operator", write=lines.append).of("ClusterMember").info(
        "Adding member \N{SNOWMAN}\nX", address="10.0.0.1"
    )
    (line,) = lines
    assert line.endswith("}\n")
    assert line.count("\n") == 1
    assert "Adding member \N{SNOWMAN}" in line
    body: dict[str, Any] = json.loads(line)
    assert body.pop("time").endswith("Z")
    assert list(body.items()) == [
        ("level", "info"),
        ("operator", "etcd-operator"),
        ("controller", "ClusterMember"),
        ("msg", "Adding member \N{SNOWMAN}\nX"),
        ("address", "10.0.0.1"),
    ]


class Recorded:
    """An API that keeps events."""

    def __init__(self) -> None:
        self.events: dict[str, Object] = {}
        self.changed = threading.Condition()

    def create(self, _resource: object, body: Object, _namespace: str) -> Object:
        name = body["metadata"]["name"]
        if name in self.events:
            raise ApiError("there already", status=409)
        return self._keep(name, body)

    def get(self, _resource: object, name: str, _namespace: str) -> Object:
        return self.events[name]

    def patch(self, _resource: object, name: str, patch: Object, _namespace: str) -> Object:
        if name not in self.events:
            raise ApiError("gone", status=404)
        return self._keep(name, {**self.events[name], **patch})

    def _keep(self, name: str, body: Object) -> Object:
        self.events[name] = body
        return body

    def counts(self) -> list[int]:
        return [event["count"] for event in self.events.values()]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "_PARTING", 60.0)


def told(api: Recorded, times: int = 1, message: str = "Adding member X") -> list[str]:
    lines: list[str] = []
    events = Events(cast("Client", api), "etcd-operator", "here", Log("etcd-operator", write=lines.append))
    events.start()
    for _ in range(times):
        events.normal("MemberAdd", message)
    events.stop()
    return lines


def test_the_same_event_is_counted_by_a_restarted_operator_too() -> None:
    api = Recorded()
    lines = told(api, 2)
    assert [json.loads(line)["msg"] for line in lines] == ["Adding member X"] * 2
    assert api.counts() == [2]
    told(api)
    assert api.counts() == [3]
    told(api, message="Adding member Y")
    assert api.counts() == [3, 1]


def test_events_are_limited_and_the_log_is_not() -> None:
    api = Recorded()
    assert len(told(api, 100)) == 100
    assert api.counts() == [10]


def test_what_an_operator_is_told() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--replicas", type=int)

    words = [
        "--image=etcd=registry/etcd:1",
        "--image",
        "x=y=z",
        "--listen=127.0.0.2:9",
        "--no-leader-elect",
        "--replicas=3",
    ]
    options = parsed_options("one", words, 9101, True, more)
    assert dict(options.image) == {"etcd": "registry/etcd:1", "x": "y=z"}
    assert (options.listen, options.leader_elect, options.replicas) == (("127.0.0.2", 9), False, 3)
    assert parsed_options("one", [], 9101, True, more).listen == ("127.0.0.1", 9101)
    for wrong in ("--image=etcd", "--image==x", "--listen=9101", "--listen=host:name"):
        with pytest.raises(SystemExit):
            parsed_options("one", [wrong], 9101, True, more)
