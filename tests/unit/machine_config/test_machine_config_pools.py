"""Which pool a Node is in, how far a pool is, and what new machines of it get."""

from __future__ import annotations

from typing import Any

import pytest

from falsework.operators.machine_config.config_server import config_to_serve
from falsework.operators.machine_config.pool_status import new_status, with_render_failure
from falsework.operators.machine_config.selection import pool_of, selects
from falsework.operators.machine_config.served import fetches_in

PREFIX = "machineconfiguration.openshift.io"
ROLE = "node-role.kubernetes.io"


def node(name: str, config: str, state: str = "Done", ready: str = "True", **rest: Any) -> dict[str, Any]:
    annotations = {f"{PREFIX}/currentConfig": config, f"{PREFIX}/state": state, f"{PREFIX}/reason": rest.pop("why", "")}
    metadata = {"name": name, "annotations": annotations, "labels": rest.pop("labels", {})}
    return {"metadata": metadata, "spec": rest, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def pool(name: str, config: str = "new", *, paused: bool = False, selector: Any = None) -> dict[str, Any]:
    spec = {
        "configuration": {"name": config},
        "paused": paused,
        "nodeSelector": selector or {"matchLabels": {f"{ROLE}/{name}": ""}},
    }
    status = {"configuration": {"name": "old"}, "certExpirys": []}
    return {"metadata": {"name": name, "generation": 3}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "1", "b": ""}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Other"}]}, False),
        ({}, False),
        (None, False),
    ],
)
def test_selectors(selector: Any, is_selected: bool) -> None:
    assert selects(selector, {"a": "1"}) is is_selected


@pytest.mark.parametrize(
    ("roles", "name"),
    [
        (["master", "control-plane", "worker"], "master"),
        (["worker"], "worker"),
        (["worker", "infra"], "infra"),
        (["master", "infra"], "master"),
        ([], None),
    ],
)
def test_a_node_is_in_one_pool(roles: list[str], name: str | None) -> None:
    pools = [pool("worker"), pool("infra"), pool("master")]
    labels = {f"{ROLE}/{role}": "" for role in roles}
    assert pool_of(node("n", "new", labels=labels), pools) == name


def said(status: dict[str, Any]) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in status["conditions"]}


def test_all_have_it() -> None:
    status = new_status(pool("worker"), [node("a", "new"), node("b", "new", ready="False")], "now")
    assert said(status) == {"Updated": "True", "Updating": "False", "NodeDegraded": "False", "Degraded": "False"}
    assert status["configuration"] == {"name": "new"}
    assert (status["machineCount"], status["updatedMachineCount"], status["readyMachineCount"]) == (2, 2, 1)
    assert status["unavailableMachineCount"] == 1
    assert status["certExpirys"] == [], "what is not ours stays"


def test_some_are_behind_and_one_is_broken() -> None:
    machines = [
        node("a", "new"),
        node("b", "old", "Degraded", why="no room"),
        node("c", ""),
        node("d", "new", "Working"),
    ]
    status = new_status(pool("worker"), machines, "now")
    assert said(status) == {"Updated": "False", "Updating": "True", "NodeDegraded": "True", "Degraded": "True"}
    assert status["configuration"] == {"name": "old"}
    assert status["degradedMachineCount"] == 1
    messages = {entry["type"]: entry.get("message", "") for entry in status["conditions"]}
    assert messages["NodeDegraded"] == "b: no room"
    for part in ("b (has old", "c (has not said", "d (Working)"):
        assert part in messages["Updating"]


def test_a_paused_pool_does_not_go_on() -> None:
    status = new_status(pool("worker", paused=True), [node("a", "old")], "now")
    assert (said(status)["Updated"], said(status)["Updating"]) == ("False", "False")


def test_what_cannot_be_rendered_is_degraded_until_it_can() -> None:
    found = pool("worker")
    found["status"] = with_render_failure(found["status"], "50-own is broken", "then")
    status = new_status(found, [node("a", "new")], "now")
    assert (said(status)["RenderDegraded"], said(status)["Degraded"]) == ("True", "True")
    status = with_render_failure(status, "", "later")
    assert said(new_status({**found, "status": status}, [], "now"))["Degraded"] == "False"


@pytest.mark.parametrize(("is_paused", "name"), [(True, "old"), (False, "new")])
def test_new_machines_get_the_newest_config_unless_the_pool_is_paused(is_paused: bool, name: str) -> None:
    assert config_to_serve(pool("worker", paused=is_paused)) == name


def test_the_first_config_is_served_before_anybody_has_it() -> None:
    assert config_to_serve({"spec": {"configuration": {"name": "first"}}}) == "first"
    assert config_to_serve({}) is None


def test_fetches_are_read_and_nonsense_is_not() -> None:
    data = {"a": '{"time": 5, "config": "c"}', "b": "1", "c": "{", "d": '{"time": "x", "config": "c"}'}
    assert {name: fetch.time for name, fetch in fetches_in({"data": data}).items()} == {"a": 5}
    assert fetches_in(None) == {}
