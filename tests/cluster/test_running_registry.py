"""The cluster's own registry: an image pushed through its route runs as a pod."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import partial

import pytest

from application import apply, namespace
from eventually import eventually
from falsework.lab.folder import NETWORK
from falsework.machines.namespaces import inside
from falsework.progress import Progress
from falsework.release.build import build_release
from falsework.release.cache import Cache, default_root
from falsework.release.payload import load_payload
from lab_under_test import LabUnderTest
from oci_push import Registry, push
from raised_cluster import DOMAIN, Raised

SPACE = "openshift-image-registry"
ROUTE = f"default-route-{SPACE}.apps.{DOMAIN}"
SERVICE = f"image-registry.{SPACE}.svc:5000"
CONFIG = "configs.imageregistry.operator.openshift.io"


@pytest.fixture(scope="module")
def managed(raised: Raised) -> Iterator[LabUnderTest]:
    """With its images in a volume of the default StorageClass, and a route."""
    lab = raised.lab
    eventually(lambda: operator(lab) == ("True", "Removed"), lambda: operator(lab))
    edit(lab, {"managementState": "Managed", "storage": {"pvc": {"claim": ""}}, "defaultRoute": True})
    try:
        until_available(lab)
        yield lab
    finally:
        edit(lab, {"managementState": "Removed", "storage": None, "defaultRoute": False})
        lab.run("kubectl", "wait", "-n", SPACE, "--for=delete", "deployment/image-registry", "--timeout=120s")
        lab.run("kubectl", "delete", "pvc", "-n", SPACE, "image-registry-storage")


def edit(lab: LabUnderTest, spec: dict[str, object]) -> None:
    patch = json.dumps({"spec": spec})
    lab.at_the_workstation(f"oc patch {CONFIG} cluster --type=merge -p '{patch}'")


def operator(lab: LabUnderTest) -> tuple[str, str]:
    found = json.loads(lab.run("kubectl", "get", "co", "image-registry", "-o", "json"))["status"]["conditions"]
    return next((entry["status"], entry["reason"]) for entry in found if entry["type"] == "Available")


def until_available(lab: LabUnderTest) -> None:
    def is_available() -> bool:
        status, reason = operator(lab)
        return status == "True" and reason != "Removed"

    eventually(is_available, lambda: lab.run("kubectl", "get", CONFIG, "cluster", "-o", "yaml"))


def registry(lab: LabUnderTest) -> Registry:
    """As somebody outside the cluster sees it."""
    secret = json.loads(lab.run("kubectl", "get", "secret", "-n", SPACE, "image-registry-login", "-o", "json"))["data"]
    login = (base64.b64decode(secret["username"]).decode(), base64.b64decode(secret["password"]).decode())
    path = r"jsonpath={.data.ca-bundle\.crt}"
    words = ("kubectl", "get", "cm", "-n", "openshift-config-managed", "default-ingress-cert", "-o", path)
    return Registry(ROUTE, 443, lab.run(*words), login, str(lab.site.ingress_vip))


def test_an_image_pushed_through_the_route_runs_as_a_pod(managed: LabUnderTest) -> None:
    cache = Cache(default_root(), print)
    with Progress() as progress:
        image = build_release(load_payload(), cache, progress).images["pause"]
    outside = registry(managed)
    network = managed.lab.netns_path(NETWORK)
    stranger = Registry(outside.name, outside.port, outside.authority, None, outside.address)
    until_answered(managed, outside)
    assert inside(network, partial(stranger.ask, "GET", "/v2/"))[0] == 401
    inside(network, partial(push, outside, image, cache, "shop/door", "1"))
    with namespace(managed, "visitors"):
        for name, host in (("by-service", SERVICE), ("by-route", ROUTE)):
            container = {"name": "it", "image": f"{host}/shop/door:1", "imagePullPolicy": "Always"}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "visitors"}}
            apply(managed, {**body, "spec": {"containers": [container], "terminationGracePeriodSeconds": 1}})
        for name in ("by-service", "by-route"):
            managed.run("kubectl", "wait", "-n", "visitors", "--for=condition=Ready", f"pod/{name}", "--timeout=180s")


def until_answered(lab: LabUnderTest, outside: Registry) -> None:
    ask = partial(outside.ask, "GET", "/v2/")

    def answer() -> object:
        try:
            return inside(lab.lab.netns_path(NETWORK), ask)[0]
        except OSError as error:
            return error

    eventually(lambda: answer() == 200, answer)
