"""Which routes a router serves, by the objects alone."""

from __future__ import annotations

from typing import Any

import pytest

from falsework.kube.client import Object
from falsework.operators.router.admission import Router, status_with
from falsework.operators.router.endpoints import Endpoint, by_service, endpoints_of
from falsework.operators.router.routes import (
    CLAIMED,
    EXACT,
    INVALID,
    NOT_ADMITTED,
    PATH_TYPE,
    Refusal,
    judged,
    named_host,
    route_of,
)

Ports = tuple[tuple[str, int], ...]


def route(name: str, host: str = "shop.example.com", age: int = 0, namespace: str = "shop", **spec: Any) -> Object:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "creationTimestamp": f"2026-01-01T00:00:{59 - age:02}Z",
    }
    return {"metadata": metadata, "spec": {"host": host, "to": {"name": name, "weight": 100}, **spec}}


def reasons(*bodies: Object) -> dict[str, str]:
    return {name: refusal.reason for (_, name), refusal in judged(bodies).refused.items()}


def test_the_older_route_has_the_host() -> None:
    younger, older = route("younger", age=1), route("older", age=2)
    for order in ((younger, older), (older, younger)):
        verdicts = judged(order)
        assert [one.name for one in verdicts.admitted] == ["older"]
        (refusal,) = verdicts.refused.values()
        assert refusal == Refusal(CLAIMED, "route older already exposes shop.example.com and is older")


def test_other_paths_of_a_host_are_for_routes_of_its_namespace() -> None:
    owner = route("owner", age=9)
    assert reasons(owner, route("below", path="/below"), route("slash", path="/")) == {"slash": CLAIMED}
    assert reasons(owner, route("thief", path="/below", namespace="other")) == {"thief": CLAIMED}
    # A host is the same host in any case.
    assert reasons(owner, route("loud", host="SHOP.example.com")) == {"loud": CLAIMED}


def test_a_path_alone_is_another_one_than_all_that_begins_with_it() -> None:
    prefix, exact, slash = route("prefix", path="/cart", age=9), route("exact", path="/cart"), route("s", path="/cart/")
    for body in (exact, slash):
        body["metadata"]["annotations"] = {PATH_TYPE: EXACT}
    verdicts = judged([prefix, exact, slash])
    assert [(one.path, one.is_exact) for one in verdicts.admitted] == [
        ("/cart", False),
        ("/cart", True),
        ("/cart/", True),
    ]
    # Where there is no path, it is all of the host.
    assert not route_of({**route("none"), "metadata": exact["metadata"]}).is_exact


def test_who_cannot_be_served_claims_nothing() -> None:
    bad = route("bad", age=9, wildcardPolicy="Subdomain")
    assert reasons(bad, route("good")) == {"bad": NOT_ADMITTED}
    refused = {("shop", "bad"): Refusal(NOT_ADMITTED, "")}
    verdicts = judged([route("bad", age=9), route("good")], refused)
    assert [one.name for one in verdicts.admitted] == ["good"]


@pytest.mark.parametrize(
    "tls",
    [
        {"termination": "edge", "certificate": "x"},
        {"termination": "edge", "certificate": "x", "key": "y"},
        {"termination": "edge", "externalCertificate": {"name": "x"}},
        {"termination": "edge", "caCertificate": "x"},
        {"termination": "reencrypt"},
        {"termination": "reencrypt", "destinationCACertificate": "x"},
    ],
)
def test_tls_that_cannot_work_is_refused(tls: Object) -> None:
    assert reasons(route("bad", tls=tls)) == {"bad": INVALID}


@pytest.mark.parametrize("path", ["/a b", "/a\nb", '/a"', "/#", "/a\\"])
def test_paths_that_would_be_something_else_in_haproxys_language_are_refused(path: str) -> None:
    assert reasons(route("bad", path=path)) == {"bad": INVALID}


def test_a_host_is_made_of_the_routes_name() -> None:
    assert named_host(route("shop"), "apps.example.com") == "shop-shop.apps.example.com"
    assert named_host(route("a.b"), "apps.example.com") == "a-b-shop.apps.example.com"
    assert named_host(route("shop", subdomain="x.y"), "apps.example.com") == "x.y.apps.example.com"
    assert named_host(route("s" * 60), "apps.example.com") == ""
    assert reasons(route("s" * 60, host="")) == {"s" * 60: INVALID}


def test_a_routers_word_leaves_those_of_others_alone() -> None:
    router, other = Router("default", "apps.example.com"), {"routerName": "other"}
    body = {**route("shop"), "status": {"ingress": [other]}}
    told = status_with(body, router, None, "2026-01-01T00:00:00Z")
    assert told["ingress"][0] == other
    assert told["ingress"][1]["routerCanonicalHostname"] == "router-default.apps.example.com"
    again = {**body, "status": told}
    assert status_with(again, router, None, "2026-02-02T00:00:00Z") == told
    refused = status_with(again, router, Refusal(CLAIMED, "why"), "2026-02-02T00:00:00Z")["ingress"][1]
    assert refused["conditions"] == [
        {
            "type": "Admitted",
            "status": "False",
            "reason": CLAIMED,
            "message": "why",
            "lastTransitionTime": "2026-02-02T00:00:00Z",
        }
    ]


def piece(
    service: str, *addresses: str, ports: tuple[tuple[str, int], ...] = (("web", 8080),), ready: Any = True
) -> Object:
    return {
        "metadata": {"name": service, "namespace": "shop", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}} for address in addresses],
        "ports": [{"name": name, "port": number, "protocol": "TCP"} for name, number in ports],
    }


def endpoints(body: Object, *pieces: Object) -> list[Endpoint]:
    return list(endpoints_of(route_of(body), by_service(pieces)))


def test_ports_are_found_by_name_by_number_or_come_first() -> None:
    both = piece("shop", "10.0.0.1", ports=(("web", 8080), ("admin", 9090)))
    for wanted, port in ((None, 8080), ("admin", 9090), (9090, 9090)):
        body = route("shop", port={"targetPort": wanted}) if wanted else route("shop")
        assert endpoints(body, both) == [Endpoint("10.0.0.1", port)]
    assert endpoints(route("shop", port={"targetPort": "none"}), both) == []


def test_only_pods_that_are_ready_get_requests() -> None:
    unsure, away = piece("shop", "10.0.0.1", ready=None), piece("shop", "10.0.0.2", ready=False)
    assert endpoints(route("shop"), unsure, away) == [Endpoint("10.0.0.1", 8080)]


def test_a_services_part_is_divided_among_its_pods() -> None:
    body = route("old", alternateBackends=[{"name": "new", "weight": 50}, {"name": "none", "weight": 0}])
    body["spec"]["to"]["weight"] = 100
    found = endpoints(
        body, piece("old", "10.0.0.1", "10.0.0.2", "10.0.0.3"), piece("new", "10.0.1.1"), piece("none", "10.0.2.1")
    )
    weights = {endpoint.address: endpoint.weight for endpoint in found}
    assert weights["10.0.1.1"] == 256
    assert weights["10.0.0.1"] == weights["10.0.0.3"] == round(256 * (100 / 3) / 50)
    assert weights["10.0.2.1"] == 0
