"""The router against a real API, with a real HAProxy and real clients."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from operator_process import until
from played_router import DOMAIN, Authority, Backend, RouterUnderTest, router_under_test
from real_api import RealApi

from falsework.host import packages
from falsework.kube.resources import ROUTES
from falsework.operators.runtime.conditions import status_of

SPACE = "routed"


@pytest.fixture(scope="module")
def router(cluster_api: RealApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterUnderTest]:
    packages.ensure(["haproxy"], print)
    with router_under_test(cluster_api, tmp_path_factory.mktemp("router"), SPACE) as found:
        until(lambda: found.health() == 200, found.program)
        yield found


@pytest.fixture
def backend() -> Iterator[Backend]:
    server = Backend("first")
    yield server
    server.stop()


def host_of(name: str) -> str:
    return f"{name}-{SPACE}.{DOMAIN}"


def is_admitted(router: RouterUnderTest, name: str) -> bool | None:
    return status_of(router.admitted(name).get("conditions"), "Admitted")


def test_an_edge_route_is_served_from_the_moment_it_is_admitted(router: RouterUnderTest, backend: Backend) -> None:
    router.serve("shop", backend)
    router.route("shop", "shop", tls={"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"})
    until(lambda: is_admitted(router, "shop"), router.program)
    said = router.admitted("shop")
    assert (said["host"], said["routerName"]) == (host_of("shop"), "default")
    assert said["routerCanonicalHostname"] == f"router-default.{DOMAIN}"
    assert router.client.get(ROUTES, "shop", SPACE)["spec"]["host"] == host_of("shop")

    status, answer, headers = router.get(host_of("shop"), "/cart?x=1", tls=True)
    assert (status, answer["name"], answer["path"]) == (200, "first", "/cart?x=1")
    assert answer["headers"]["x-forwarded-proto"] == "https"
    assert answer["headers"]["x-forwarded-for"] == "127.0.0.1"
    assert "Secure" in headers["Set-Cookie"]
    status, _, headers = router.get(host_of("shop"), "/cart")
    assert (status, headers["Location"]) == (302, f"https://{host_of('shop')}/cart")
    status, page, _ = router.get(f"other.{DOMAIN}", tls=True)
    assert status == 503
    assert "Application is not available" in page


def test_each_kind_of_tls_is_answered_by_who_is_asked(
    router: RouterUnderTest, backend: Backend, tmp_path: Path
) -> None:
    inner, own = Authority.new("inner"), Authority.new("own")
    secure = Backend("secure", inner.leaf("passed.example.com"), tmp_path)
    router.serve("plain", backend)
    router.serve("secure", secure)
    certificate, key = own.leaf("own.example.com")
    router.route(
        "own", "plain", host="own.example.com", tls={"termination": "edge", "certificate": certificate, "key": key}
    )
    router.route("passed", "secure", host="passed.example.com", tls={"termination": "passthrough"})
    for name, trusted in (("again", inner), ("distrust", own)):
        tls = {"termination": "reencrypt", "destinationCACertificate": trusted.pem}
        router.route(name, "secure", tls=tls)
    router.route("plain", "plain", host="own.example.com", path="/plain")
    names = ("own", "passed", "again", "distrust", "plain")
    until(lambda: all(is_admitted(router, name) for name in names), router.program)

    # With TLS each shows the certificate that is meant: the client checks its name.
    assert router.get("own.example.com", tls=True, trusted=own)[1]["name"] == "first"
    assert router.get("passed.example.com", tls=True, trusted=inner)[1]["name"] == "secure"
    assert router.get(host_of("again"), tls=True)[1]["name"] == "secure"
    assert router.get(host_of("distrust"), tls=True)[0] == 503
    # Without, only those that allow it; a path ends where a part of it ends.
    statuses = {path: router.get("own.example.com", path)[0] for path in ("/", "/plain", "/plain/x", "/plainly")}
    assert statuses == {"/": 503, "/plain": 200, "/plain/x": 200, "/plainly": 503}
    secure.stop()


def test_what_cannot_be_served_is_refused_alone(router: RouterUnderTest, backend: Backend) -> None:
    router.serve("good", backend)
    certificate, _ = router.authority.leaf("bad.example.com")
    _, other_key = router.authority.leaf("bad.example.com")
    router.route("bad", "good", tls={"termination": "edge", "certificate": certificate, "key": other_key})
    router.route("broken", "good", tls={"termination": "reencrypt", "destinationCACertificate": "nonsense"})
    router.route("elder", "good", host="claimed.example.com")
    until(lambda: is_admitted(router, "elder"), router.program)
    router.route("younger", "good", host="claimed.example.com")
    invalid = "ExtendedValidationFailed"
    reasons = {"bad": invalid, "broken": invalid, "younger": "HostAlreadyClaimed"}
    until(lambda: all(is_admitted(router, name) is False for name in reasons), router.program)
    assert {name: router.admitted(name)["conditions"][0]["reason"] for name in reasons} == reasons
    assert other_key.splitlines()[1] not in str(router.admitted("bad"))
    assert router.get("claimed.example.com")[1]["name"] == "first"
    # Who held the host gives it back.
    router.client.delete(ROUTES, "elder", SPACE)
    until(lambda: is_admitted(router, "younger"), router.program)
    assert router.get("claimed.example.com")[0] == 200


def test_pods_come_and_go_without_a_reload_or_a_failed_request(router: RouterUnderTest, backend: Backend) -> None:
    others = [Backend(f"pod-{number}") for number in range(3)]
    router.serve("moving", backend)
    router.route("moving", "moving")
    until(lambda: is_admitted(router, "moving"), router.program)
    reloads = len(router.program.said("after a reload"))
    failed: list[object] = []
    answered, ended = set(), threading.Event()

    def ask_on() -> None:
        while not ended.is_set():
            try:
                status, said, _ = router.get(host_of("moving"))
            except (OSError, http.client.HTTPException) as error:
                failed.append(error)
                continue
            if status == 200:
                answered.add(said["name"])
            else:
                failed.append(status)

    client = threading.Thread(target=ask_on)
    client.start()
    try:
        router.serve("moving", backend, *others)
        until(lambda: len(answered) == 4, router.program)
        router.serve("moving", *others[:1])
        until(lambda: _is_alone(router, "moving", "pod-0"), router.program)
        assert len(router.program.said("after a reload")) == reloads
        # A reload, under the same requests.
        router.route("another", "moving")
        until(lambda: is_admitted(router, "another"), router.program)
    finally:
        ended.set()
        client.join()
    assert failed == []
    assert len(router.program.said("after a reload")) > reloads
    # A client that has its cookie stays with its pod.
    router.serve("moving", *others)
    until(lambda: len({router.get(host_of("moving"))[1]["name"] for _ in range(12)}) == 3, router.program)
    _, said, headers = router.get(host_of("moving"))
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert {router.get(host_of("moving"), cookie=cookie)[1]["name"] for _ in range(12)} == {said["name"]}
    for one in others:
        one.stop()


def _is_alone(router: RouterUnderTest, route: str, name: str) -> bool:
    return {router.get(host_of(route))[1]["name"] for _ in range(8)} == {name}
