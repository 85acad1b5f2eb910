"""A router whose proxy does not take everything."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, cast

import pytest

from falsework.kube.client import Object
from falsework.operators.router import controller as module
from falsework.operators.router import pem
from falsework.operators.router.admission import Router
from falsework.operators.router.config import Config, Place
from falsework.operators.router.controller import RouterController
from falsework.operators.router.proxy import Proxy, RefusedError
from falsework.operators.runtime.program import Program


class FickleProxy:
    """Takes nothing with one of these in it."""

    def __init__(self, *poison: str) -> None:
        self.poison = poison
        self.serves: set[str] = set()
        self.tries = 0

    def needs_reload(self, _: Config) -> bool:
        return True

    def use(self, config: Config) -> bool:
        self.tries += 1
        names = {backend.name.rpartition(":")[2] for backend in config.backends}
        if names & set(self.poison) or "" in self.poison:
            raise RefusedError("no")
        self.serves = names
        return True


class Known:
    """An informer that knows these."""

    def __init__(self, *bodies: Object) -> None:
        self.bodies = list(bodies)

    def objects(self) -> list[Object]:
        return self.bodies

    def get(self, name: str, _: str = "") -> Object | None:
        return next((body for body in self.bodies if body["metadata"]["name"] == name), None)


class PlayedProgram:
    """The API is as large as the test needs it."""

    namespace = "openshift-ingress"

    def __init__(self, *routes: Object) -> None:
        self.routes = Known(*routes)
        self.client = self.log = self
        self.told: dict[str, str] = {}

    def follow(self, resource: Any, *_: Any, **__: Any) -> Known:
        data = {key: base64.b64encode(b"x").decode() for key in ("tls.crt", "tls.key")}
        secret = {"metadata": {"name": "certificate"}, "data": data}
        return {"routes": self.routes, "secrets": Known(secret)}.get(resource.plural, Known())

    def replace(self, _: Any, body: Object, __: str) -> None:
        (entry,) = body["status"]["ingress"]
        self.told[body["metadata"]["name"]] = entry["conditions"][0]["status"]

    def info(self, *_: Any, **__: Any) -> None: ...

    warning = info


def route(name: str) -> Object:
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": name,
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": metadata, "spec": {"host": f"{name}.example.com", "to": {"name": name}}}


def controller(program: PlayedProgram, proxy: FickleProxy) -> RouterController:
    router = Router("default", "apps.example.com")
    return RouterController(cast(Program, program), router, Place(Path("/shared")), cast(Proxy, proxy), "certificate")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RELOAD_EVERY", 0.0)
    monkeypatch.setattr(pem, "pair_fault", lambda _: "")


def test_the_route_that_is_to_blame_is_found_and_the_others_are_served() -> None:
    names = [f"shop-{number}" for number in range(9)]
    program, proxy = PlayedProgram(*map(route, (*names, "poison", "poison-too"))), FickleProxy("poison", "poison-too")
    router = controller(program, proxy)
    assert router.sync("") == 0.0
    assert router.sync("") is None
    assert proxy.serves == set(names)
    assert {name for name, status in program.told.items() if status == "False"} == {"poison", "poison-too"}
    assert proxy.tries < 16

    # It is looked at again as soon as it is another one.
    proxy.poison = ()
    assert router.sync("") is None
    assert "poison" not in proxy.serves
    for body in program.routes.bodies:
        body["metadata"]["generation"] = 2
    assert router.sync("") is None
    assert "poison" in proxy.serves


def test_no_route_is_blamed_for_a_proxy_that_takes_nothing() -> None:
    program = PlayedProgram(route("shop"))
    with pytest.raises(RefusedError):
        controller(program, FickleProxy("")).sync("")
    assert program.told == {}
