"""The router against a real API, with a real HAProxy and real clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from operator_process import until
from played_router import DOMAIN, Backend, RouterUnderTest, router_under_test
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
