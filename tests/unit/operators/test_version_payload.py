"""The payload's order, and what a folder of manifests must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.errors import FalseworkError
from falsework.operators.cluster_version.payload import Manifest, Mode, own_payload, payload_in, plan


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
    images = DEFAULT_PAYLOAD.images
    payload = own_payload("1.2.3", "image", images)
    other = own_payload("1.2.4", "image", images)
    assert payload.digest == own_payload("1.2.3", "image", images).digest != other.digest
    for (chain,) in [[chain] for chain in plan(payload.manifests, Mode.INSTALL)[0]]:
        kinds = [one.kind for one in chain]
        # A definition before its objects, the operator's word last.
        assert "ClusterOperator" not in kinds[:-1]
        customs = [place for place, one in enumerate(chain) if ".openshift.io/" in one.body["apiVersion"]]
        crds = [place for place, kind in enumerate(kinds) if kind == "CustomResourceDefinition"]
        if chain[0].component in ("etcd", "kube-apiserver"):
            assert max(crds) < min(customs)


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
