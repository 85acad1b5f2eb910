"""Claims and volumes as the storage operator sees them, and folders on a node."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from falsework.kube.client import ApiError, Object
from falsework.kube.resources import Resource
from falsework.operators.runtime.program import Program
from falsework.operators.storage import claims, folder_pods
from falsework.operators.storage.storage_class import default_of, storage_class
from falsework.operators.storage.volume_folder import main
from falsework.operators.storage.volumes import VolumesController

UID = "0c8e3b5a-1111-4222-8333-944445555666"
VOLUME = f"pvc-{UID}"


def claim(annotations: Object | None = None, **spec: Any) -> Object:
    asked = {"volume.kubernetes.io/storage-provisioner": claims.PROVISIONER, claims.SELECTED_NODE: "worker-0.lab"}
    return {
        "metadata": {
            "name": "data",
            "namespace": "shop",
            "uid": UID,
            "annotations": asked if annotations is None else annotations,
        },
        "spec": {
            "storageClassName": "falsework-local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "3Gi"}},
            **spec,
        },
    }


def node(name: str = "worker-0.lab") -> Object:
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": "worker-0"}}}


def volume(phase: str, policy: str = "Delete", *, deleted: bool = False, ours: bool = True) -> Object:
    metadata: Object = {"name": VOLUME, "finalizers": [claims.FINALIZER] if ours else ["kubernetes.io/pv-protection"]}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": {"persistentVolumeReclaimPolicy": policy}, "status": {"phase": phase}}


def test_a_claim_gets_a_folder_of_the_node_its_pod_goes_to() -> None:
    found = claims.read(claim())
    assert found is not None
    assert (found.volume, found.node, found.refusal) == (VOLUME, "worker-0.lab", "")
    spec = claims.persistent_volume(found, node(), "Delete")["spec"]
    assert spec["local"]["path"] == f"/var/lib/falsework/volumes/{VOLUME}"
    assert spec["capacity"] == {"storage": "3Gi"}
    assert (spec["claimRef"]["namespace"], spec["claimRef"]["uid"]) == ("shop", UID)
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["worker-0"]


@pytest.mark.parametrize(
    "found",
    [
        claim({claims.SELECTED_NODE: "worker-0.lab"}),
        claim({"volume.kubernetes.io/storage-provisioner": "somebody.example/else"}),
        claim(volumeName="already"),
        {**claim(), "metadata": {**claim()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
def test_claims_of_others_and_those_that_have_a_volume_are_left_alone(found: Object) -> None:
    assert claims.read(found) is None


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"accessModes": ["ReadWriteOnce", "ReadWriteMany"]}, "cannot be ReadWriteMany"),
        ({"volumeMode": "Block"}, "no block device"),
        ({"dataSource": {"kind": "VolumeSnapshot", "name": "old"}}, "no copies"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "no labels"),
    ],
)
def test_what_a_folder_cannot_be_is_refused_in_words(spec: Object, why: str) -> None:
    found = claims.read(claim(**spec))
    assert found is not None
    assert why in found.refusal


def test_what_is_remembered_is_enough() -> None:
    whole = claim()
    whole["metadata"]["managedFields"] = [{"much": "of it"}]
    assert claims.read(claims.remembered(whole)) == claims.read(whole)
    assert "managedFields" not in claims.remembered(whole)["metadata"]


@pytest.mark.parametrize(
    ("found", "removed", "kept"),
    [
        (volume("Bound"), False, False),
        (volume("Available"), False, False),
        (volume("Released"), True, False),
        (volume("Released", ours=False), True, False),
        (volume("Bound", deleted=True), False, False),
        (volume("Available", deleted=True), True, False),
        (volume("Available", deleted=True, ours=False), False, False),
        (volume("Released", "Retain"), False, False),
        (volume("Released", "Retain", deleted=True), False, True),
        (volume("Bound", "Retain", deleted=True), False, False),
    ],
)
def test_data_goes_when_nobody_has_a_claim_on_it_and_nobody_wants_to_keep_it(
    found: Object, removed: bool, kept: bool
) -> None:
    assert claims.is_to_be_removed(found) is removed
    assert claims.is_to_be_kept_by_its_owner(found) is kept


class Remembered:
    """An informer's objects."""

    def __init__(self, *bodies: Object) -> None:
        self.bodies = list(bodies)

    def objects(self) -> list[Object]:
        return self.bodies

    def get(self, name: str, _: str = "") -> Object | None:
        return next((one for one in self.bodies if one["metadata"]["name"] == name), None)


class PlayedProgram:
    """What is remembered may be older than what there is: of claims there is none."""

    def __init__(self, claims: Remembered, pods: Remembered) -> None:
        self._followed = {"persistentvolumeclaims": claims, "pods": pods}
        self.client, self.images, self.log = self, {"falsework": "falsework:1"}, None
        self.made: list[str] = []
        self.deleted: list[str] = []

    def follow(self, resource: Resource, *_: Any, **__: Any) -> Remembered:
        return self._followed.get(resource.plural, Remembered())

    def get(self, resource: Resource, name: str, _: str = "") -> Object:
        found = {"nodes": node(), "storageclasses": {"reclaimPolicy": "Delete"}}.get(resource.plural)
        if found is None:
            raise ApiError(f"there is no {name}", status=404)
        return found

    def create(self, _: Resource, body: Object) -> None:
        self.made.append(body["metadata"]["name"])

    def delete(self, _: Resource, name: str, *__: Any, **___: Any) -> None:
        self.deleted.append(name)


def test_a_folder_is_not_forgotten_when_its_claim_goes_at_the_last_moment() -> None:
    maker = folder_pods.pod(folder_pods.MAKE, VOLUME, "worker-0.lab", "falsework:1")
    maker["metadata"]["uid"] = "uid"
    known = Remembered(claim())
    program = PlayedProgram(known, Remembered({**maker, "status": {"phase": "Succeeded"}}))
    volumes = VolumesController(cast(Program, program))
    volumes.sync(VOLUME)
    assert (program.made, program.deleted) == ([], [])
    known.bodies = []
    volumes.sync(VOLUME)
    assert (program.made, program.deleted) == ([f"remove-{VOLUME}"], [f"make-{VOLUME}"])


def test_pods_of_folders_are_told_a_name_and_see_one_folder() -> None:
    found = folder_pods.pod(folder_pods.REMOVE, VOLUME, "worker-0.lab", "falsework:1")
    assert folder_pods.volume_of(found) == VOLUME
    (mounted,) = found["spec"]["volumes"]
    assert mounted["hostPath"]["path"] == claims.FOLDER
    assert found["spec"]["containers"][0]["command"][-3:] == ["remove", VOLUME, "--folder=/volumes"]
    assert found["spec"]["automountServiceAccountToken"] is False


def test_why_a_pod_failed() -> None:
    ended = {"message": "no space", "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}
    found: Object = {"metadata": {}, "status": {"containerStatuses": [{"state": {"terminated": ended}}]}}
    assert folder_pods.last_words(found) == "no space"
    assert folder_pods.seconds_since_end(found, datetime(2026, 1, 1, 0, 1, tzinfo=UTC)) == 60
    evicted = {"metadata": {}, "status": {"phase": "Failed", "reason": "OutOfpods"}}
    assert folder_pods.last_words(evicted) == "OutOfpods"


def test_a_folder_is_made_for_all_users_inside_and_nobody_outside(tmp_path: Path) -> None:
    words = [VOLUME, f"--folder={tmp_path}"]
    assert main(["make", *words]) == 0
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    made = tmp_path / VOLUME
    assert stat.S_IMODE(made.stat().st_mode) == 0o777
    # Whoever uses it may have other wishes.
    made.chmod(0o2770)
    assert main(["make", *words]) == 0
    assert stat.S_IMODE(made.stat().st_mode) == 0o2770


def test_a_folder_is_removed_and_nothing_beside_it(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "volumes"
    for place in (outside, folder / VOLUME / "deep", folder / f".{VOLUME}.new"):
        place.mkdir(parents=True)
    (outside / "file").write_text("precious")
    (folder / VOLUME / "deep" / "link").symlink_to(outside)
    (folder / "other").mkdir()
    assert main(["remove", VOLUME, f"--folder={folder}"]) == 0
    assert main(["remove", VOLUME, f"--folder={folder}"]) == 0
    assert [one.name for one in folder.iterdir()] == ["other"]
    assert (outside / "file").read_text() == "precious"


@pytest.mark.parametrize("name", ["..", ".", "", "pvc-../../etc", "other", f"{VOLUME}/..", f"{VOLUME}\n"])
def test_what_is_no_volume_is_not_touched(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    assert main(["remove", name, f"--folder={tmp_path}"]) == 1
    assert (tmp_path / "other").exists()
    assert "is no name of a volume" in capsys.readouterr().err


def test_a_link_in_the_place_of_a_volume_is_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "volumes"
    outside.mkdir()
    folder.mkdir()
    (outside / "file").write_text("precious")
    (folder / VOLUME).symlink_to(outside)
    assert main(["remove", VOLUME, f"--folder={folder}"]) == 1
    assert (outside / "file").exists()


def test_there_is_one_default_class() -> None:
    ours = storage_class(is_default=True)
    assert default_of([storage_class(is_default=False)]) == ""
    assert default_of([ours]) == "falsework-local"
