"""The bootstrap's keys and certificates as the cluster's objects."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
import yaml
from bootstrap_samples import ignited, sample_facts

from falsework.bootstrap import places
from falsework.bootstrap.cluster_secrets import cluster_secrets
from falsework.bootstrap.disk import Disk
from falsework.bootstrap.rendering import Rendering
from falsework.manifests.objects import Object
from falsework.manifests.release import config_manifests
from falsework.site.load import default_site


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bootstrap")
    return ignited(folder / "root", folder / "assets")


@pytest.fixture(scope="module")
def objects(root: Path) -> dict[tuple[str, str, str], Object]:
    """By kind, namespace and name."""
    found = [entry for entries in cluster_secrets(Disk(root), sample_facts()).values() for entry in entries]
    result = {(entry["kind"], entry["metadata"]["namespace"], entry["metadata"]["name"]): entry for entry in found}
    assert len(result) == len(found)
    return result


def content(entry: Object, key: str) -> bytes:
    value = entry["data"][key]
    return base64.b64decode(value) if entry["kind"] == "Secret" else value.encode()


def test_each_master_finds_its_certificates_and_the_bootstraps_stay_with_it(
    root: Path, objects: dict[tuple[str, str, str], Object]
) -> None:
    site = default_site()
    certificates = objects["Secret", "openshift-etcd", "etcd-all-certs"]
    assert set(certificates["data"]) == {
        f"etcd-{kind}-{site.fqdn(master)}.{ending}"
        for master in site.masters
        for kind in ("peer", "serving", "serving-metrics")
        for ending in ("crt", "key")
    }
    name = f"etcd-peer-{site.fqdn(site.masters[0])}.key"
    assert content(certificates, name) == (root / f"opt/openshift/tls/etcd-all-certs/{name}").read_bytes()


def test_pairs_and_bundles_are_the_files(root: Path, objects: dict[tuple[str, str, str], Object]) -> None:
    tls = root / "opt/openshift/tls"
    for kind, namespace, name, key, file in (
        ("Secret", "openshift-kube-apiserver", "kubelet-client", "tls.key", "kube-apiserver-to-kubelet-client.key"),
        ("Secret", "openshift-kube-controller-manager", "csr-signer", "tls.crt", "kubelet-signer.crt"),
        ("ConfigMap", "openshift-kube-apiserver", "etcd-serving-ca", "ca-bundle.crt", "etcd-ca-bundle.crt"),
        (
            "ConfigMap",
            "openshift-kube-apiserver",
            "sa-token-signing-certs",
            "service-account-002.pub",
            "service-account.pub",
        ),
        ("ConfigMap", "openshift-etcd", "etcd-all-bundles", "metrics-ca-bundle.crt", "etcd-metrics-ca-bundle.crt"),
    ):
        assert content(objects[kind, namespace, name], key) == (tls / file).read_bytes(), (namespace, name)


def test_a_master_has_three_ways_to_the_api(objects: dict[tuple[str, str, str], Object]) -> None:
    kubeconfigs = objects["Secret", "openshift-kube-apiserver", "node-kubeconfigs"]
    servers = {
        key: yaml.safe_load(content(kubeconfigs, key))["clusters"][0]["cluster"]["server"]
        for key in kubeconfigs["data"]
    }
    facts = sample_facts()
    assert servers == {
        "localhost.kubeconfig": "https://localhost:6443",
        "lb-int.kubeconfig": f"https://{facts.api_int_host}:6443",
        "lb-ext.kubeconfig": f"https://{facts.api_host}:6443",
    }


def test_every_machine_that_joins_has_its_credential(objects: dict[tuple[str, str, str], Object]) -> None:
    site = default_site()
    joining = {site.fqdn(machine) for machine in (*site.masters, *site.workers)}
    assert set(objects["Secret", "openshift-machine-config-operator", "machine-join"]["data"]) == joining
    known = yaml.safe_load(objects["ConfigMap", "openshift-config", "machine-inventory"]["data"]["inventory.json"])
    assert joining < {entry["name"] for entry in known}


def test_their_namespaces_come_first_and_the_files_are_for_root_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    Rendering(Disk(root), sample_facts()).cluster_secrets()
    where = {
        entry["metadata"]["name"]: file
        for file, entries in config_manifests().items()
        for entry in entries
        if entry["kind"] == "Namespace"
    }
    for file, entries in cluster_secrets(Disk(root), sample_facts()).items():
        place = root / places.CLUSTER_MANIFESTS.relative_to("/") / file
        assert place.stat().st_mode & 0o777 == 0o600
        assert all(where[entry["metadata"]["namespace"]] < file for entry in entries)
