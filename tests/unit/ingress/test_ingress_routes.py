"""The routes of an Ingress."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.operators.ingress.ingress_routes import TERMINATION, is_ours, named_by, routes_of
from falsework.operators.ingress.settings import settings_of
from falsework.operators.router.routes import EXACT, PATH_TYPE

SERVICE = {"spec": {"ports": [{"port": 80, "targetPort": 8080}, {"name": "web", "port": 81, "targetPort": "http"}]}}
SECRET = {"data": {"tls.crt": base64.b64encode(b"certificate").decode(), "tls.key": base64.b64encode(b"key").decode()}}


def ingress(
    *hosts: str, port: Object | None = None, tls: Object | None = None, annotations: dict[str, str] | None = None
) -> Object:
    backend = {"service": {"name": "shop", "port": port or {"number": 80}}}
    rules = [{"host": host, "http": {"paths": [{"path": "/cart", "backend": backend}]}} for host in hosts]
    metadata = {"name": "shop", "namespace": "shop", "uid": "uid", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"rules": rules, **({"tls": [tls]} if tls else {})}}


def routes(body: Object, service: Object | None = SERVICE, secret: Object | None = SECRET) -> list[Object]:
    return routes_of(body, lambda _: service, lambda _: secret)


def test_a_rule_with_a_host_is_a_route() -> None:
    (route,) = routes(ingress("shop.example.com", "*.example.com", ""))
    spec = route["spec"]
    assert (spec["host"], spec["path"], spec["to"]["name"]) == ("shop.example.com", "/cart", "shop")
    assert route["metadata"]["ownerReferences"][0]["uid"] == "uid"
    assert routes(ingress("shop.example.com"))[0]["metadata"]["name"] == route["metadata"]["name"]


def test_a_path_that_is_said_twice_is_one_route_and_in_two_ways_is_two() -> None:
    body = ingress("shop.example.com")
    (path,) = body["spec"]["rules"][0]["http"]["paths"]
    other = {**path, "backend": {"service": {"name": "other", "port": {"number": 80}}}}
    body["spec"]["rules"][0]["http"]["paths"] = [path, other, {**other, "pathType": "Exact"}]
    first, exact = routes(body)
    assert (first["spec"]["to"]["name"], exact["spec"]["to"]["name"]) == ("shop", "other")
    assert exact["metadata"]["annotations"] == {PATH_TYPE: EXACT}
    # What is passed on unread has no path, and so no way to say it.
    body["spec"]["tls"] = [{"hosts": ["shop.example.com"]}]
    body["metadata"]["annotations"] = {TERMINATION: "passthrough"}
    (passed,) = routes(body)
    assert "annotations" not in passed["metadata"]


@pytest.mark.parametrize(
    ("port", "target"),
    [({"number": 80}, 8080), ({"number": 81}, "web"), ({"name": "web"}, "web"), ({"number": 9}, None)],
)
def test_the_services_port_says_which_of_the_pods_it_is(port: Object, target: Any) -> None:
    found = [route["spec"]["port"]["targetPort"] for route in routes(ingress("shop.example.com", port=port))]
    assert found == ([target] if target else [])


def test_what_is_not_there_yet_makes_no_route() -> None:
    secured = ingress("shop.example.com", tls={"hosts": ["shop.example.com"], "secretName": "shop-tls"})
    assert routes(secured, service=None) == []
    assert routes(secured, secret=None) == []
    (route,) = routes(secured)
    assert route["spec"]["tls"] == {
        "termination": "edge",
        "insecureEdgeTerminationPolicy": "Redirect",
        "certificate": "certificate",
        "key": "key",
    }
    assert named_by(secured) == {("Secret", "shop-tls"), ("Service", "shop")}


def test_an_annotation_says_where_tls_ends() -> None:
    tls = {"hosts": ["shop.example.com"]}
    (route,) = routes(ingress("shop.example.com", tls=tls, annotations={TERMINATION: "passthrough"}))
    assert route["spec"]["tls"]["termination"] == "passthrough"
    assert "path" not in route["spec"]
    with pytest.raises(FalseworkError, match="there is no termination nowhere"):
        routes(ingress("shop.example.com", tls=tls, annotations={TERMINATION: "nowhere"}))


def test_ingresses_of_other_classes_are_left_alone() -> None:
    body = ingress("shop.example.com")
    assert is_ours(body, {"openshift-default"})
    body["spec"]["ingressClassName"] = "openshift-default"
    assert is_ours(body, {"openshift-default"})
    body["spec"]["ingressClassName"] = "other"
    assert not is_ours(body, {"openshift-default"})
    old = ingress("shop.example.com", annotations={"kubernetes.io/ingress.class": "other"})
    assert not is_ours(old, {"openshift-default"})


@pytest.mark.parametrize(("workers", "replicas"), [(0, 1), (1, 1), (2, 2), (5, 2)])
def test_there_are_no_more_routers_than_nodes_for_them(workers: int, replicas: int) -> None:
    config = {"spec": {"domain": "apps.example.com"}}
    settings = settings_of({"spec": {}}, config, workers)
    assert (settings.replicas, settings.domain) == (replicas, "apps.example.com")
    assert settings.node_selector["node-role.kubernetes.io/worker"] == ""
    assert settings_of({"spec": {"replicas": 4, "domain": "x.example.com"}}, config, workers).replicas == 4


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(FalseworkError, match="cannot be published by Private"):
        settings_of({"spec": {"endpointPublishingStrategy": {"type": "Private"}}}, {"spec": {"domain": "x"}}, 1)
    with pytest.raises(FalseworkError, match="nobody says under which domain"):
        settings_of({"spec": {}}, None, 1)
