"""Claims: whether Falsework is to make a volume for one, whether it can, and what volume that is."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.kube.client import Object
from falsework.manifests.objects import named

PROVISIONER = "falsework.io/local"
FOLDER = "/var/lib/falsework/volumes"
"""Of the nodes. Nothing outside it is made or removed."""
LABEL = "falsework.io/local-volume"
"""Of the volumes made here, and of the pods that make and remove their folders."""
FINALIZER = "falsework.io/local-volume"
"""A volume stays in the API as long as its folder, however it is deleted."""
NODE = "falsework.io/node"
"""Annotation of a volume: the node its folder is on."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""The scheduler's word where the first pod goes."""

_ASKED = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_HOSTNAME = "kubernetes.io/hostname"
_ON_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}


@dataclass(frozen=True)
class Claim:
    """What of a PersistentVolumeClaim matters here."""

    name: str
    namespace: str
    uid: str
    storage_class: str
    size: str
    access_modes: tuple[str, ...]
    node: str
    refusal: str
    """Why it cannot have a volume, if so."""

    @property
    def volume(self) -> str:
        """The same claim always has the same volume: made twice, it is still one."""
        return volume_name(self.uid)


def volume_name(uid: str) -> str:
    return f"pvc-{uid}"


def is_asked(claim: Object) -> bool:
    """Whether the API's own controller says that nothing there fits, and that this provisioner is to make one."""
    annotations = claim["metadata"].get("annotations") or {}
    return any(annotations.get(key) == PROVISIONER for key in _ASKED)


def remembered(claim: Object) -> Object:
    """Of the many claims there may be, only what is looked at here."""
    metadata, spec = claim["metadata"], claim.get("spec") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "annotations")
    return {"metadata": {key: metadata[key] for key in kept if key in metadata}, "spec": spec}


def read(claim: Object) -> Claim | None:
    """None if it needs no volume of this provisioner."""
    metadata, spec = claim["metadata"], claim.get("spec") or {}
    if not is_asked(claim) or spec.get("volumeName") or "deletionTimestamp" in metadata:
        return None
    return Claim(
        metadata["name"],
        metadata["namespace"],
        metadata["uid"],
        str(spec.get("storageClassName") or ""),
        str(((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0"),
        tuple(map(str, spec.get("accessModes") or ())),
        str((metadata.get("annotations") or {}).get(SELECTED_NODE) or ""),
        _refusal(spec),
    )


def _refusal(spec: Object) -> str:
    if too_many := sorted(set(spec.get("accessModes") or ()) - _ON_ONE_NODE):
        return f"a folder of one node cannot be {', '.join(too_many)}; ask for ReadWriteOnce"
    if spec.get("volumeMode") == "Block":
        return "a folder is no block device; leave out volumeMode"
    if spec.get("dataSource") or spec.get("dataSourceRef"):
        return "there are no copies and snapshots of volumes here; leave out dataSource"
    if spec.get("selector"):
        return "a new volume has no labels to select it by; leave out selector"
    return ""


def persistent_volume(claim: Claim, node: Object, reclaim_policy: str) -> Object:
    """As large as was asked for. Nothing enforces that: it is a folder of the node's disk."""
    metadata = node["metadata"]
    hostname = (metadata.get("labels") or {}).get(_HOSTNAME) or metadata["name"]
    term = {"matchExpressions": [{"key": _HOSTNAME, "operator": "In", "values": [hostname]}]}
    result = named(
        "v1",
        "PersistentVolume",
        claim.volume,
        spec={
            "capacity": {"storage": claim.size},
            "accessModes": list(claim.access_modes),
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": reclaim_policy,
            "storageClassName": claim.storage_class,
            "local": {"path": f"{FOLDER}/{claim.volume}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim.name,
                "namespace": claim.namespace,
                "uid": claim.uid,
            },
        },
    )
    result["metadata"] |= {
        "labels": {LABEL: "true"},
        "annotations": {_PROVISIONED_BY: PROVISIONER, NODE: metadata["name"]},
        "finalizers": [FINALIZER],
    }
    return result


def is_to_be_removed(volume: Object) -> bool:
    """With what is in it: its claim is gone, or it has been deleted and no claim has it."""
    phase = (volume.get("status") or {}).get("phase")
    deletes = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    return deletes and (phase in ("Released", "Failed") or (_is_ending(volume) and phase != "Bound"))


def is_to_be_kept_by_its_owner(volume: Object) -> bool:
    """It has been deleted, and its data is to stay where it is."""
    retains = volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
    return retains and _is_ending(volume) and (volume.get("status") or {}).get("phase") != "Bound"


def _is_ending(volume: Object) -> bool:
    """Deleted, and waiting for us. Once it waits only for others, it is none of our business."""
    metadata = volume["metadata"]
    return "deletionTimestamp" in metadata and FINALIZER in (metadata.get("finalizers") or ())
