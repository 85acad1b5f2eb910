"""The pods of the temporary control plane: as someone last read them, and against the files they need."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from bootstrap_samples import ignited, sample_facts

from falsework.assets.bootstrap_facts import IMAGES, BootstrapFacts, Network
from falsework.assets.serialize import to_yaml
from falsework.bootstrap import static_pods
from falsework.bootstrap.rendering import TEMPORARY
from falsework.control_plane.flags import SHUTDOWN_DELAY

GOLDEN = Path(__file__).parent / "golden" / "static-pods.yaml"
ALL: dict[str, Callable[[BootstrapFacts], static_pods.Pod]] = {
    "machineconfigoperator-bootstrap-pod.yaml": static_pods.machine_config_server,
    "etcd-member-pod.yaml": static_pods.etcd,
    **TEMPORARY,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ignited(tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("assets"))


def pods() -> dict[str, Any]:
    return {name: build(sample_facts()) for name, build in ALL.items()}


def container_of(pod: static_pods.Pod) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return dict(container)


def flags_of(pod: static_pods.Pod) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in container_of(pod)["command"]:
        if word.startswith("--"):
            name, _, value = word.removeprefix("--").partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_they_are_as_someone_last_read_them() -> None:
    content = to_yaml(pods())
    if os.environ.get("FALSEWORK_UPDATE_GOLDEN"):
        GOLDEN.write_bytes(content)
    assert content.decode() == GOLDEN.read_text()


def test_names_are_those_of_openshift() -> None:
    names = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods().values()}
    assert names == {
        "openshift-etcd/etcd-bootstrap-member",
        "openshift-kube-apiserver/bootstrap-kube-apiserver",
        "kube-system/bootstrap-kube-controller-manager",
        "kube-system/bootstrap-kube-scheduler",
        "openshift-machine-config-operator/bootstrap-machine-config-operator",
        "openshift-cluster-version/bootstrap-cluster-version-operator",
    }


def test_only_one_container_is_called_etcd() -> None:
    assert [name for pod in pods().values() if "etcd" in (name := container_of(pod)["name"])] == ["etcd"]


@pytest.mark.parametrize("name", ALL)
def test_everything_it_is_told_to_read_is_there(name: str, root: Path) -> None:
    pod = pods()[name]
    spec, container = pod["spec"], container_of(pod)
    host_paths = {volume["name"]: volume["hostPath"] for volume in spec["volumes"]}
    mounts = {mount["mountPath"]: host_paths[mount["name"]]["path"] for mount in container["volumeMounts"]}
    loopback = static_pods.kubeconfigs(b"")
    words = [*container["command"], *(entry["value"] for entry in container.get("env", ()))]
    for path in re.findall(r"/etc/[^,=:\s]+\.(?:crt|key|pub|kubeconfig)|/etc/\S+/kubeconfig\b", " ".join(words)):
        mount = max((mount for mount in mounts if path.startswith(mount)), key=len)
        on_host = mounts[mount] + path.removeprefix(mount)
        if on_host.startswith("/etc/kubernetes/bootstrap-secrets/"):
            assert on_host.rpartition("/")[2] in loopback
        else:
            assert (root / on_host.lstrip("/")).is_file(), path
    assert {volume["type"] for volume in host_paths.values()} <= {"Directory", "DirectoryOrCreate", "File"}
    assert container["image"] in sample_facts().images.values()
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert spec["hostNetwork"] is True


@pytest.mark.parametrize("name", ["kube-controller-manager", "kube-scheduler"])
def test_clients_of_the_api_come_with_certificates_of_their_own(name: str, root: Path) -> None:
    config = yaml.safe_load(static_pods.kubeconfigs(b"")[f"{name}.kubeconfig"])
    files = [config["clusters"][0]["cluster"]["certificate-authority"], *config["users"][0]["user"].values()]
    assert config["clusters"][0]["cluster"]["server"] == "https://localhost:6443"
    for file in files:
        assert (root / "opt/openshift/tls" / Path(file).name).is_file(), file


def test_the_api_is_at_its_port_with_all_its_names() -> None:
    flags = flags_of(pods()["kube-apiserver-pod.yaml"])
    assert flags["secure-port"] == ["6443"]
    assert flags["bind-address"] == ["0.0.0.0"]
    assert len(flags["tls-sni-cert-key"]) == 3
    assert flags["service-cluster-ip-range"] == ["172.30.0.0/16"]
    pod = pods()["kube-apiserver-pod.yaml"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > 2 * SHUTDOWN_DELAY


def test_etcdctl_needs_to_be_told_nothing() -> None:
    env = {entry["name"]: entry["value"] for entry in container_of(pods()["etcd-member-pod.yaml"])["env"]}
    assert {"ETCDCTL_ENDPOINTS", "ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY"} <= env.keys()
    assert env["ETCDCTL_ENDPOINTS"] == "https://192.168.126.100:2379"


def test_networks_of_both_kinds_have_a_slice_of_their_own_size() -> None:
    networks = (Network("10.128.0.0/14", 23), Network("fd01::/48", 64))
    flags = flags_of(
        static_pods.kube_controller_manager(dataclasses.replace(sample_facts(), cluster_networks=networks))
    )
    assert flags["cluster-cidr"] == ["10.128.0.0/14,fd01::/48"]
    assert flags["node-cidr-mask-size-ipv4"] == ["23"]
    assert flags["node-cidr-mask-size-ipv6"] == ["64"]
    assert "node-cidr-mask-size" not in flags


def test_the_facts_name_every_image() -> None:
    assert set(sample_facts().images) == set(IMAGES)
    assert BootstrapFacts.from_json(sample_facts().to_json()) == sample_facts()
