"""The masters' static pods, against the bootstrap's and against the objects they are made from."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from falsework.assets.bootstrap_facts import Network
from falsework.assets.ignition_configs import bootstrap_facts
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.bootstrap import static_pods
from falsework.bootstrap.cluster_secrets import cluster_secrets
from falsework.bootstrap.disk import Disk
from falsework.control_plane.pods import Pod
from falsework.control_plane.revision_files import RESOURCES
from falsework.operators import api_client_pod
from falsework.operators.kube_apiserver import pod as apiserver
from falsework.operators.kube_controller_manager import pod as controller_manager
from falsework.operators.kube_scheduler import pod as scheduler
from falsework.operators.site_facts import SiteFacts
from falsework.site.load import default_site
from ignited import ignited

FACTS = bootstrap_facts(default_site(), DEFAULT_PAYLOAD)
SITE = SiteFacts(FACTS.cluster_networks, FACTS.service_networks, f"https://{FACTS.api_int_host}:6443")
TOKEN_CHECKS = ("service-account-001.pub", "service-account-002.pub")
PODS: dict[str, Pod] = {
    apiserver.NAMESPACE: apiserver.pod("image", apiserver.etcd_servers(FACTS.masters), SITE, TOKEN_CHECKS),
    controller_manager.NAMESPACE: controller_manager.pod("image", SITE),
    scheduler.NAMESPACE: scheduler.pod("image"),
}
MODULES = {module.NAMESPACE: module for module in (apiserver, controller_manager, scheduler)}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Namespace → what a node finds below the revision's folder: the bootstrap's objects and the operators' own."""
    folder = tmp_path_factory.mktemp("bootstrap")
    root = ignited(folder / "root", folder / "assets")
    found: dict[str, set[str]] = {}
    for objects in cluster_secrets(Disk(root), FACTS).values():
        for body in objects:
            kind, metadata = f"{body['kind'].lower()}s", body["metadata"]
            found.setdefault(metadata["namespace"], set()).update(
                f"{kind}/{metadata['name']}/{key}" for key in body["data"]
            )
    for module in (controller_manager, scheduler):
        found[module.NAMESPACE].add(f"configmaps/{module.KUBECONFIG}/kubeconfig")
    return found


def files_in(text: str) -> set[str]:
    return set(re.findall(rf"{RESOURCES}/((?:configmaps|secrets)/[^\",]+)", text))


def command_of(pod: Pod) -> list[str]:
    (container,) = pod["spec"]["containers"]
    return list(container["command"])


def flags_of(pod: Pod) -> dict[str, str]:
    return dict(word.removeprefix("--").split("=", 1) for word in command_of(pod)[1:])


@pytest.mark.parametrize("namespace", PODS)
def test_every_file_is_there_and_every_input_is_in_the_revision(namespace: str, given: dict[str, set[str]]) -> None:
    module: Any = MODULES[namespace]
    text = json.dumps(PODS[namespace])
    if hasattr(module, "KUBECONFIG"):
        text += api_client_pod.kubeconfig("somebody", SITE.internal_api, module.CLIENT)["kubeconfig"]
    files = files_in(text)
    assert files
    assert files <= given[namespace]
    used = {tuple(path.split("/")[:2]) for path in files}
    inputs = {("configmaps", name) for name in module.CONFIG_MAPS} | {("secrets", name) for name in module.SECRETS}
    # For people on a master, not for the program.
    assert inputs - used <= {("configmaps", "kube-apiserver-server-ca"), ("secrets", "node-kubeconfigs")}
    assert used <= inputs
    assert {name for kind, name in inputs} <= {path.split("/")[1] for path in given[namespace]}


@pytest.mark.parametrize(
    ("temporary", "namespace", "own"),
    [
        (
            static_pods.kube_apiserver,
            apiserver.NAMESPACE,
            {"advertise-address", "etcd-servers", "shutdown-delay-duration", "shutdown-watch-termination-grace-period"},
        ),
        (static_pods.kube_controller_manager, controller_manager.NAMESPACE, set()),
        (static_pods.kube_scheduler, scheduler.NAMESPACE, set()),
    ],
)
def test_but_for_its_files_it_is_told_what_the_bootstraps_is_told(
    temporary: Any, namespace: str, own: set[str]
) -> None:
    before, after = flags_of(temporary(FACTS)), flags_of(PODS[namespace])
    assert before.keys() == after.keys()
    different = {name for name, value in before.items() if value != after[name] and not value.startswith("/etc/")}
    assert different == own


def test_the_api_server_knows_its_node_and_prefers_its_etcd() -> None:
    pod = PODS[apiserver.NAMESPACE]
    flags = flags_of(pod)
    assert flags["advertise-address"] == "$(HOST_IP)"
    assert flags["etcd-servers"].split(",") == [
        "https://localhost:2379",
        *(f"https://{address}:2379" for address in sorted(FACTS.masters)),
    ]
    assert flags["service-account-jwks-uri"] == f"https://{FACTS.api_int_host}:6443/openid/v1/jwks"
    (container,) = pod["spec"]["containers"]
    assert container["env"] == [{"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}]
    assert pod["metadata"]["labels"].items() >= {"app": "openshift-kube-apiserver", "apiserver": "true"}.items()
    assert apiserver.etcd_servers(["fd01::7"])[1] == "https://[fd01::7]:2379"


@pytest.mark.parametrize("namespace", PODS)
def test_a_pod_says_within_a_second_that_it_is_ready(namespace: str) -> None:
    (container,) = PODS[namespace]["spec"]["containers"]
    assert container["startupProbe"]["periodSeconds"] == 1
    assert container["startupProbe"]["httpGet"] == container["readinessProbe"]["httpGet"]
    assert container["livenessProbe"]["failureThreshold"] > 3
    volume = PODS[namespace]["spec"]["volumes"][0]["hostPath"]["path"]
    assert volume == f"{RESOURCES}/{MODULES[namespace].NAME}-pod-REVISION"


def test_networks_of_both_kinds_have_a_slice_of_their_own_size() -> None:
    networks = (Network("10.128.0.0/14", 23), Network("fd01::/48", 64))
    flags = flags_of(controller_manager.pod("image", SiteFacts(networks, FACTS.service_networks, "https://api")))
    assert flags["node-cidr-mask-size-ipv4"] == "23"
    assert flags["node-cidr-mask-size-ipv6"] == "64"


def test_the_same_pod_is_the_same_text() -> None:
    again = apiserver.pod("image", apiserver.etcd_servers(reversed(FACTS.masters)), SITE, reversed(TOKEN_CHECKS))
    assert again == PODS[apiserver.NAMESPACE]
