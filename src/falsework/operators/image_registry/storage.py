"""The claim whose volume the images are in."""

from __future__ import annotations

from collections.abc import Iterable

from falsework.kube.client import Object
from falsework.manifests.objects import named
from falsework.manifests.operators.image_registry import NAMESPACE
from falsework.operators.image_registry.settings import DEFAULT_CLAIM, Settings, UnfitError

OWNER = "imageregistry.openshift.io"
"""An annotation: this claim was made here and by no person."""

_SHARED, _OF_ONE_NODE = "ReadWriteMany", "ReadWriteOnce"
_SIZE = "100Gi"


def new_claim(settings: Settings) -> Object:
    """For the cluster's default StorageClass. One pod needs no volume that several nodes can write: few have one."""
    if settings.claim != DEFAULT_CLAIM:
        raise UnfitError(
            "StorageNotFound",
            f"there is no claim {NAMESPACE}/{settings.claim}",
            fix=f"make it, or leave spec.storage.pvc.claim empty: then {DEFAULT_CLAIM} is made",
        )
    mode = _OF_ONE_NODE if settings.replicas <= 1 else _SHARED
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": _SIZE}}}
    result = named("v1", "PersistentVolumeClaim", settings.claim, NAMESPACE, spec=spec)
    result["metadata"]["annotations"] = {OWNER: "true"}
    return result


def strategy_for(settings: Settings, claim: Object | None) -> str:
    """How pods are replaced. A volume of one node at a time is given up by the old pod before the new one has it."""
    if claim is None or _SHARED in _modes(claim):
        return settings.strategy or "RollingUpdate"
    what = f"claim {NAMESPACE}/{settings.claim} is not {_SHARED}"
    if settings.replicas > 1:
        raise UnfitError("StorageNotShared", f"{what}: it is good for one replica", fix="set spec.replicas to 1")
    if settings.strategy == "RollingUpdate":
        raise UnfitError(
            "StorageNotShared", f"{what}: two pods cannot have it at once", fix="set spec.rolloutStrategy to Recreate"
        )
    return "Recreate"


def _modes(claim: Object) -> Iterable[str]:
    return map(str, (claim.get("spec") or {}).get("accessModes") or ())
