"""The payload's order, and what a folder of manifests must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from falsework.assets.bootstrap_facts import IMAGES
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.errors import FalseworkError
from falsework.operators.cluster_version.payload import Manifest, Mode, own_payload, payload_in, plan

WORKLOADS = ("Deployment", "DaemonSet")


def manifest(file: str, name: str = "one") -> Manifest:
    return Manifest(file, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "here"}})


FILES = [
    manifest("0000_20_b_02_second.yaml"),
    manifest("0000_10_a_01_first.yaml"),
    manifest("0000_20_b_01_first.yaml"),
    manifest("0000_30_a_01_later.yaml"),
    manifest("unnumbered.yaml"),
]


def files_of(mode: Mode) -> list[list[list[str]]]:
    return [[[one.file for one in chain] for chain in chains] for chains in plan(FILES, mode)]


def test_an_install_starts_all_components_at_once() -> None:
    assert files_of(Mode.INSTALL) == [
        [
            ["0000_10_a_01_first.yaml", "0000_30_a_01_later.yaml"],
            ["0000_20_b_01_first.yaml", "0000_20_b_02_second.yaml"],
            ["unnumbered.yaml"],
        ]
    ]


def test_an_update_goes_by_run_levels() -> None:
    assert files_of(Mode.UPDATE) == [
        [["0000_10_a_01_first.yaml"]],
        [["0000_20_b_01_first.yaml", "0000_20_b_02_second.yaml"]],
        [["0000_30_a_01_later.yaml"]],
        [["unnumbered.yaml"]],
    ]


def test_looking_for_drift_has_no_order() -> None:
    (chains,) = plan(FILES, Mode.RECONCILE)
    assert sorted(chain[0].file for chain in chains) == sorted(one.file for one in FILES)
    assert all(len(chain) == 1 for chain in chains)


def test_our_own_release_is_sound() -> None:
    # Of the images, what the bootstrap is told of must do.
    images = {name: DEFAULT_PAYLOAD.images[name] for name in IMAGES}
    payload = own_payload("1.2.3", "image", images)
    other = own_payload("1.2.4", "image", images)
    assert payload.digest == own_payload("1.2.3", "image", images).digest != other.digest
    (chains,) = plan(payload.manifests, Mode.INSTALL)
    for chain in chains:
        kinds = [one.kind for one in chain]
        # A definition before its objects, the operator's word last.
        assert "ClusterOperator" not in kinds[:-1]
        customs = [place for place, one in enumerate(chain) if ".openshift.io/" in one.body["apiVersion"]]
        crds = [place for place, kind in enumerate(kinds) if kind == "CustomResourceDefinition"]
        if customs and crds and chain[0].component in ("etcd", "kube-apiserver"):
            assert max(crds) < min(customs)
    # Pods wait for their namespace and their rights, and for no definition.
    pods = {chain[0].component: [one.kind for one in chain] for chain in chains if chain[-1].kind in WORKLOADS}
    later = {one.component for one in payload.manifests if one.after_pivot}
    assert next(name for name in pods if name not in later).startswith("machine-config")
    assert set([*pods][: len(later)]) == later
    assert pods["network"][0] == "ServiceAccount"
    assert all("CustomResourceDefinition" not in kinds for kinds in pods.values())
    first = [chain[0].kind for chain in chains]
    assert set(first[: first.count("Namespace")]) == {"Namespace"}


def test_before_the_pivot_there_is_only_what_it_waits_for() -> None:
    payload = own_payload("1.2.3", "image", {name: DEFAULT_PAYLOAD.images[name] for name in IMAGES})
    early = {one.component for one in payload.manifests if one.kind in WORKLOADS and not one.after_pivot}
    controlling = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    machines = ("machine-approver", "machine-config", "machine-config-daemon", "machine-config-server")
    assert early == {"cluster-version-operator", "network", *controlling, *machines}
    # A site's own manifests may need those, and bootkube waits until they are in.
    assert not any(
        one.after_pivot
        for one in payload.manifests
        if one.kind in ("Namespace", "CustomResourceDefinition", "ClusterOperator")
    )


def test_what_a_new_cluster_waits_for_comes_first() -> None:
    names = ("cluster-version-operator", "network", "kube-scheduler", "etcd", "machine-config")
    files = [manifest(f"0000_{10 + level}_{name}_06_deployment.yaml", name) for level, name in enumerate(names)]
    (chains,) = plan(files, Mode.INSTALL)
    assert [chain[0].component for chain in chains] == [*reversed(names[1:]), names[0]]


def test_a_folder_of_manifests(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: here}\n"
    (tmp_path / "0000_10_a_01_x.yaml").write_text(f"{text}---\n{text.replace('NAME', 'other')}")
    (tmp_path / "image-references").write_text("no manifest")
    payload = payload_in(tmp_path, "1", "image")
    assert [str(one) for one in payload.manifests] == ['configmap "here/NAME"', 'configmap "here/other"']
    assert payload.manifests[0].key == ("", "ConfigMap", "here", "NAME")
    assert not payload.manifests[0].create_only

    (tmp_path / "0000_20_b_01_y.yaml").write_text(text)
    with pytest.raises(FalseworkError, match="the same configmap"):
        payload_in(tmp_path, "1", "image")
    (tmp_path / "0000_20_b_01_y.yaml").write_text("kind: ConfigMap\n")
    with pytest.raises(FalseworkError, match="without apiVersion or name"):
        payload_in(tmp_path, "1", "image")


def test_a_folder_without_manifests(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(FalseworkError, match="no manifests"):
            payload_in(folder, "1", "image")
