"""What the node's daemon writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from falsework.errors import FalseworkError
from falsework.manifests.operators.machine_config_daemon import manifests
from falsework.node import folders
from falsework.node.daemon import OPERANDS
from falsework.node.folders import make_folder
from falsework.node.static_pods import Files, Revision, StaticPods, pod_of

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "etcd", "labels": {"app": "etcd"}},
    "spec": {
        "containers": [{"name": "etcd", "env": [{"name": "NAME_OF_REVISION", "value": "REVISION"}]}],
        "volumes": [{"hostPath": {"path": "/etc/kubernetes/static-pod-resources/etcd-pod-REVISION"}}],
    },
}


def files(pod: Any = POD, certificate: bytes = b"key") -> Files:
    return {
        "configmaps/etcd-pod/pod.yaml": json.dumps(pod).encode(),
        "secrets/certs/tls.key": certificate,
    }


def revision(number: int, certificate: bytes = b"key") -> Revision:
    return Revision.of("etcd", number, files(certificate=certificate))


def tree(folder: Path) -> dict[str, tuple[str, bytes]]:
    return {
        str(path.relative_to(folder)): (oct(path.lstat().st_mode), path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def moments(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_folder_becomes_what_it_is_to_be_and_is_then_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "there" / "folder"
    wanted = {"a/x": b"1", "a/y": b"2", "b/c/z": b"3", "top": b""}
    make_folder(folder, wanted)
    right = tree(folder)
    assert right == {
        "a": ("0o40700", b""),
        "a/x": ("0o100600", b"1"),
        "a/y": ("0o100600", b"2"),
        "b": ("0o40700", b""),
        "b/c": ("0o40700", b""),
        "b/c/z": ("0o100600", b"3"),
        "top": ("0o100600", b""),
    }
    before = moments(tmp_path)
    make_folder(folder, wanted)
    assert moments(tmp_path) == before
    # Whatever happens to it.
    (folder / "a/x").chmod(0o644)
    (folder / "a/y").unlink()
    (folder / "a/y").mkdir()
    (folder / "top").unlink()
    (folder / "top").symlink_to("/etc/passwd")
    (folder / "b").chmod(0o755)
    (folder / "b/.z.abcdefgh").write_text("a draft")
    (folder / "stray").mkdir()
    (folder / "stray" / "file").touch()
    make_folder(folder, wanted)
    assert tree(folder) == right
    assert Path("/etc/passwd").stat().st_size > 0


def test_a_pod_knows_its_revision() -> None:
    pod = pod_of("etcd", files(), 7)
    assert pod["metadata"]["labels"] == {"app": "etcd", "revision": "7"}
    assert pod["spec"]["volumes"][0]["hostPath"]["path"].endswith("/etcd-pod-7")
    assert pod["spec"]["containers"][0]["env"] == [{"name": "NAME_OF_REVISION", "value": "7"}]
    unusable: list[Any] = ["text", [], {}, {"metadata": None}]
    for broken in unusable:
        with pytest.raises(FalseworkError, match="is no pod"):
            pod_of("etcd", files(broken), 7)
    with pytest.raises(FalseworkError, match="is no pod"):
        pod_of("other", files(), 7)


def test_the_manifest_comes_last_and_is_not_written_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    static_pods = StaticPods(tmp_path)
    manifest = tmp_path / "manifests" / "etcd-pod.yaml"
    written: list[Path] = []
    replaced = Path.replace

    def replace(draft: Path, path: Path) -> Path:
        assert draft.name.startswith("."), "the kubelet does not look at these"
        written.append(path)
        return replaced(draft, path)

    monkeypatch.setattr(Path, "replace", replace)
    assert not static_pods.has(revision(1))
    assert static_pods.put(revision(1))
    assert written[-1] == manifest
    assert yaml.safe_load(manifest.read_bytes()) == pod_of("etcd", files(), 1)
    assert oct(manifest.stat().st_mode) == "0o100600"
    assert (tmp_path / "static-pod-resources/etcd-pod-1/etcd-pod.yaml").read_bytes() == manifest.read_bytes()
    assert static_pods.has(revision(1))
    # The same pod in another writing is the same pod.
    manifest.write_text(json.dumps(pod_of("etcd", files(), 1)))
    before = manifest.stat().st_mtime_ns
    assert not static_pods.put(revision(1))
    assert manifest.stat().st_mtime_ns == before
    assert not static_pods.has(revision(1, b"new"))
    manifest.write_text(": {")
    (manifest.parent / ".etcd-pod.yaml.abcdefgh").touch()
    (manifest.parent / ".other.abcdefgh").touch()
    assert static_pods.put(revision(2))
    assert names_in(manifest.parent) == [".other.abcdefgh", "etcd-pod.yaml"]


def test_old_folders_go(tmp_path: Path) -> None:
    static_pods = StaticPods(tmp_path)
    assert static_pods.prune("etcd", lambda here: here) == []
    for number in (1, 2, 3):
        static_pods.put(revision(number))
    other = tmp_path / "static-pod-resources" / "etcd-pod-old"
    other.mkdir()
    assert static_pods.prune("etcd", lambda here: sorted(here)[:2]) == [1, 2]
    assert names_in(other.parent) == ["etcd-pod-3", "etcd-pod-old"]


def test_a_disk_that_takes_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(folders, "write_file", full)
    with pytest.raises(FalseworkError) as caught:
        StaticPods(tmp_path).put(revision(1))
    assert caught.value.what == "revision 1 of etcd cannot be written"
    assert "No space left" in (caught.value.cause or "")
    assert not (tmp_path / "manifests").exists()


def test_the_daemon_may_do_what_it_does_and_no_more() -> None:
    made = manifests("1", {"falsework": "image"})
    bodies = {(body["kind"], body["metadata"].get("namespace", "")): body for file in made.values() for body in file}
    daemon = bodies["DaemonSet", "openshift-machine-config-operator"]["spec"]["template"]["spec"]
    assert daemon["nodeSelector"]["node-role.kubernetes.io/master"] == "", "workers must not read these secrets"
    assert "privileged" not in daemon["containers"][0]["securityContext"]
    assert {wanted.namespace for wanted in OPERANDS} == {namespace for kind, namespace in bodies if kind == "Role"} - {
        "openshift-machine-config-operator"
    }
    (rule,) = bodies["ClusterRole", ""]["rules"]
    assert set(rule["resources"]) == {wanted.resource.plural for wanted in OPERANDS}
    secrets = next(one for one in bodies["Role", "openshift-etcd"]["rules"] if one["resources"] == ["secrets"])
    assert secrets["verbs"] == ["get"]
