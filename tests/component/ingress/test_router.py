"""The router against a real API, with a real HAProxy and real clients."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from operator_process import until
from played_router import CERTIFICATE, DOMAIN, Authority, Backend, RouterUnderTest, router_under_test
from real_api import RealApi

from falsework.host import packages
from falsework.kube.resources import ROUTES, SECRETS
from falsework.manifests.operators.ingress import ROUTER_NAMESPACE
from falsework.operators.router.routes import EXACT, PATH_TYPE
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


def test_an_exact_path_comes_before_those_that_begin_it(router: RouterUnderTest) -> None:
    host, edge = "paths.example.com", {"termination": "edge", "insecureEdgeTerminationPolicy": "Allow"}
    paths = {"whole": "/", "short": "/a", "long": "/a/b", "exact": "/a/b", "slash": "/a/b/", "only": "/a/b/c"}
    backends = {name: Backend(name) for name in paths}
    for name, path in paths.items():
        router.serve(f"path-{name}", backends[name])
        noted = {PATH_TYPE: EXACT} if name in ("exact", "slash", "only") else {}
        router.route(f"path-{name}", f"path-{name}", noted, host=host, path=path, tls=edge)
    until(lambda: all(is_admitted(router, f"path-{name}") for name in paths), router.program)
    expected = {
        "whole": ("/", "/ab", "/A/b"),
        "short": ("/a", "/a/", "/a/bc", "/a?x=/a/b"),
        "long": ("/a/b/c/", "/a/b/c/d", "/a/b/d", "/a/b//"),
        "exact": ("/a/b", "/a/b?x=1"),
        "slash": ("/a/b/",),
        "only": ("/a/b/c",),
    }
    for name, asked in expected.items():
        assert {path: router.get(host, path)[1]["name"] for path in asked} == dict.fromkeys(asked, name)
    # It is for all of those who come with TLS, too.
    certified = f"paths.{DOMAIN}"
    router.route("path-tls", "path-exact", {PATH_TYPE: EXACT}, host=certified, path="/a", tls={"termination": "edge"})
    until(lambda: is_admitted(router, "path-tls"), router.program)
    assert [router.get(certified, path, tls=True)[0] for path in ("/a", "/a/", "/a/b", "/")] == [200, 503, 503, 503]
    for backend in backends.values():
        backend.stop()


def test_what_cannot_be_served_is_refused_alone(router: RouterUnderTest, backend: Backend) -> None:
    router.serve("good", backend)
    certificate, _ = router.authority.leaf("bad.example.com")
    _, other_key = router.authority.leaf("bad.example.com")
    router.route("bad", "good", tls={"termination": "edge", "certificate": certificate, "key": other_key})
    router.route("broken", "good", tls={"termination": "reencrypt", "destinationCACertificate": "nonsense"})
    router.route("blind", "good", tls={"termination": "reencrypt"})
    router.route("elder", "good", host="claimed.example.com")
    until(lambda: is_admitted(router, "elder"), router.program)
    router.route("younger", "good", host="claimed.example.com")
    invalid = "ExtendedValidationFailed"
    reasons = {"bad": invalid, "broken": invalid, "blind": invalid, "younger": "HostAlreadyClaimed"}
    until(lambda: all(is_admitted(router, name) is False for name in reasons), router.program)
    assert {name: router.admitted(name)["conditions"][0]["reason"] for name in reasons} == reasons
    assert "destinationCACertificate: Required value" in router.admitted("blind")["conditions"][0]["message"]
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


def test_new_clients_see_a_new_certificate_and_old_ones_keep_their_connection(router: RouterUnderTest) -> None:
    held, other = threading.Event(), Authority.new("ingress-operator@2")
    slow = Backend("slow", held=held)
    router.serve("kept", slow)
    router.route("kept", "kept", tls={"termination": "edge"})
    until(lambda: is_admitted(router, "kept"), router.program)
    with ThreadPoolExecutor(1) as client:
        # It trusts the old one alone, and has its answer when there is a new one.
        answer = client.submit(router.get, host_of("kept"), tls=True)
        assert slow.asked.wait(60)
        router.certify(other)
        until(lambda: router.is_certified_by(other), router.program)
        assert not answer.done()
        held.set()
        status, said, _ = answer.result()
        assert (status, said["name"]) == (200, "slow")
    assert router.get(host_of("kept"), tls=True, trusted=other)[0] == 200
    router.certify()
    until(lambda: router.is_certified_by(router.authority), router.program)
    slow.stop()


def test_a_certificate_that_is_of_no_use_or_gone_stops_nothing(router: RouterUnderTest, backend: Backend) -> None:
    router.serve("lasting", backend)
    _, foreign_key = router.authority.leaf("foreign.example.com")
    router.certify(key=foreign_key)
    until(lambda: router.program.said("is of no use"), router.program)
    assert foreign_key.splitlines()[1] not in router.program.log.read_text()
    router.route("lasting", "lasting", tls={"termination": "edge"})
    until(lambda: is_admitted(router, "lasting"), router.program)
    router.client.delete(SECRETS, CERTIFICATE, ROUTER_NAMESPACE)
    until(lambda: router.program.said("there is no Secret"), router.program)
    router.route("later", "lasting", tls={"termination": "edge"})
    until(lambda: is_admitted(router, "later"), router.program)
    assert [router.get(host_of(name), tls=True)[0] for name in ("lasting", "later")] == [200, 200]
    other = Authority.new("ingress-operator@3")
    router.certify(other)
    until(lambda: router.is_certified_by(other), router.program)
    router.certify()
    until(lambda: router.is_certified_by(router.authority), router.program)


def _is_alone(router: RouterUnderTest, route: str, name: str) -> bool:
    return {router.get(host_of(route))[1]["name"] for _ in range(8)} == {name}
