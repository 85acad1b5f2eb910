"""The client against a real API."""

from __future__ import annotations

import base64
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_api import RealApi, free_port

from eventually import PATIENCE
from falsework.errors import FalseworkError
from falsework.kube.client import APPLY, JSON, ApiError, Client, Unreachable
from falsework.kube.connection import Patience
from falsework.kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, Resource


@pytest.fixture
def client(real_api: RealApi) -> Client:
    return real_api.client()


@pytest.fixture
def space(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"test-{time.monotonic_ns()}"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    client.delete(NAMESPACES, name)


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_an_object_is_made_read_changed_and_removed(client: Client, space: str) -> None:
    made = client.create(CONFIG_MAPS, config_map("one", a="1"), space)
    assert client.get(CONFIG_MAPS, "one", space)["data"] == {"a": "1"}
    made["data"]["b"] = "2"
    assert client.replace(CONFIG_MAPS, made)["data"] == {"a": "1", "b": "2"}
    assert client.patch(CONFIG_MAPS, "one", {"data": {"a": None}}, space)["data"] == {"b": "2"}
    json_patch = [{"op": "add", "path": "/data/c", "value": "3"}]
    assert client.patch(CONFIG_MAPS, "one", json_patch, space, kind=JSON)["data"] == {"b": "2", "c": "3"}
    applied = client.patch(CONFIG_MAPS, "two", config_map("two", d="4"), space, kind=APPLY)
    assert applied["metadata"]["managedFields"][0]["manager"] == "falsework"
    client.delete(CONFIG_MAPS, "one", space, precondition_uid=made["metadata"]["uid"])
    with pytest.raises(ApiError) as caught:
        client.get(CONFIG_MAPS, "one", space)
    assert (caught.value.status, caught.value.reason, caught.value.is_missing) == (404, "NotFound", True)
    assert "one" in str(caught.value)


def test_what_the_api_refuses_is_an_error_with_its_reason(client: Client, space: str) -> None:
    made = client.create(CONFIG_MAPS, config_map("here"), space)
    with pytest.raises(ApiError) as caught:
        client.create(CONFIG_MAPS, config_map("here"), space)
    assert (caught.value.status, caught.value.reason, caught.value.is_conflict) == (409, "AlreadyExists", True)
    client.patch(CONFIG_MAPS, "here", {"data": {"x": "y"}}, space)
    with pytest.raises(ApiError) as caught:
        client.replace(CONFIG_MAPS, made)
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")
    with pytest.raises(ApiError) as caught:
        client.delete(CONFIG_MAPS, "here", space, precondition_uid="another")
    assert caught.value.status == 409
    with pytest.raises(ApiError) as caught:
        client.create(CONFIG_MAPS, config_map("Not A Name"), space)
    assert caught.value.status == 422


def test_lists_are_whole_and_chosen_from(client: Client, space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falsework.kube.client.PAGE", 3)
    for number in range(8):
        body = config_map(f"many-{number}")
        body["metadata"] = {"name": f"many-{number}", "labels": {"odd": str(number % 2)}}
        client.create(CONFIG_MAPS, body, space)
    listed = client.list(CONFIG_MAPS, space)
    assert {item["metadata"]["name"] for item in listed.items} >= {f"many-{number}" for number in range(8)}
    assert {(item["apiVersion"], item["kind"]) for item in listed.items} == {("v1", "ConfigMap")}
    assert int(listed.version) > 0
    assert len(client.list(CONFIG_MAPS, space, labels="odd=1").items) == 4
    assert len(client.list(CONFIG_MAPS, space, fields="metadata.name=many-5").items) == 1
    assert len(client.list(CONFIG_MAPS).items) >= 8


def test_names_cannot_lead_elsewhere(client: Client, space: str) -> None:
    with pytest.raises(ApiError) as caught:
        client.get(CONFIG_MAPS, "../secrets/x?y=z#", space)
    assert caught.value.status in (400, 404)
    assert "secrets" not in caught.value.what.split("configmaps/")[0]


def test_any_path_can_be_asked(client: Client) -> None:
    assert client.raw("GET", "/readyz") == (200, b"ok")
    assert client.raw("GET", "/nothing/there")[0] == 404


def test_kinds_are_found_and_asked_for_again(client: Client) -> None:
    assert client.resource_of({"apiVersion": "v1", "kind": "Node"}) == NODES
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    assert client.resource_of(crd) == CUSTOM_RESOURCE_DEFINITIONS
    gadget = {"apiVersion": "example.test/v1", "kind": "Gadget"}
    with pytest.raises(ApiError) as caught:
        client.resource_of(gadget)
    assert caught.value.status == 404
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.test", "names": names, "scope": "Namespaced", "versions": versions}
    client.create(CUSTOM_RESOURCE_DEFINITIONS, {**crd, "metadata": {"name": "gadgets.example.test"}, "spec": spec})
    try:
        deadline = time.monotonic() + PATIENCE
        found: Resource | None = None
        while found is None and time.monotonic() < deadline:
            with contextlib.suppress(ApiError):
                found = client.resource_of(gadget)
            time.sleep(0.02)
        assert found == Resource("example.test", "v1", "gadgets", True)
    finally:
        client.delete(CUSTOM_RESOURCE_DEFINITIONS, "gadgets.example.test")


def test_a_watch_tells_what_changes(client: Client, space: str) -> None:
    with client.watch(CONFIG_MAPS, space, client.list(CONFIG_MAPS, space).version) as watch:
        client.create(CONFIG_MAPS, config_map("seen", a="1"), space)
        client.patch(CONFIG_MAPS, "seen", {"data": {"a": "2"}}, space)
        client.delete(CONFIG_MAPS, "seen", space)
        events = list(itertools.islice(watch, 3))
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert {event.object["metadata"]["name"] for event in events} == {"seen"}


def test_a_watch_lasts_until_its_end(client: Client, space: str) -> None:
    began = time.monotonic()
    assert list(client.watch(CONFIG_MAPS, space, client.list(CONFIG_MAPS, space).version, seconds=2)) == []
    assert 1 < time.monotonic() - began < PATIENCE


def test_a_watch_is_ended_by_another_thread(client: Client, space: str) -> None:
    watch = client.watch(CONFIG_MAPS, space, client.list(CONFIG_MAPS, space).version, seconds=600)
    threading.Timer(0.3, watch.close).start()
    began = time.monotonic()
    assert list(watch) == []
    assert time.monotonic() - began < PATIENCE


def test_threads_do_not_disturb_each_other(client: Client, space: str) -> None:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                name = f"t{number}-{turn}"
                client.create(CONFIG_MAPS, config_map(name, me=name), space)
                assert client.get(CONFIG_MAPS, name, space)["data"] == {"me": name}
        except Exception as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_who_may_not_is_told(real_api: RealApi) -> None:
    joining = real_api.client(real_api.kubeconfig_for("join/worker-0"))
    with pytest.raises(ApiError) as caught:
        joining.list(NODES)
    assert (caught.value.status, caught.value.reason) == (403, "Forbidden")
    assert "system:join:worker-0" in str(caught.value)


def test_a_server_without_our_trust_is_not_talked_to(real_api: RealApi, tmp_path: Path) -> None:
    other = real_api.folder / "tls" / "root-ca.crt"
    config = real_api.kubeconfig.read_text()
    ours = base64.b64encode((real_api.folder / "tls" / "kube-apiserver-localhost-signer.crt").read_bytes()).decode()
    assert ours in config
    path = tmp_path / "kubeconfig"
    path.write_text(config.replace(ours, base64.b64encode(other.read_bytes()).decode()))
    with pytest.raises(Unreachable, match="not to be trusted"):
        Client.from_kubeconfig(path).raw("GET", "/readyz")
    named = config.replace("server:", "tls-server-name: other.example\n    server:")
    path.write_text(named)
    with pytest.raises(Unreachable, match="not to be trusted"):
        Client.from_kubeconfig(path).raw("GET", "/readyz")


def test_nobody_there_is_said_at_once(real_api: RealApi, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(real_api.kubeconfig.read_text().replace(real_api.url, f"https://127.0.0.1:{free_port()}"))
    began = time.monotonic()
    with pytest.raises(Unreachable, match="connection refused") as caught:
        Client.from_kubeconfig(path, patience=Patience(connect=600)).list(NODES)
    assert isinstance(caught.value, FalseworkError)
    assert time.monotonic() - began < PATIENCE
