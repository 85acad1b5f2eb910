"""What configs.imageregistry.operator.openshift.io/cluster asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from falsework.errors import FalseworkError
from falsework.kube.client import Object

DEFAULT_CLAIM = "image-registry-storage"
_LEVELS = {"Normal": "info", "Debug": "debug", "Trace": "debug", "TraceAll": "debug"}
_STORAGES = ("emptyDir", "pvc")


class UnfitError(FalseworkError):
    """What is asked for cannot be had. Trying again does not help: a person has to ask for something else."""

    def __init__(self, reason: str, what: str, *, cause: str | None = None, fix: str | None = None) -> None:
        super().__init__(what, cause=cause, fix=fix)
        self.reason = reason


@dataclass(frozen=True)
class Settings:
    claim: str
    """Whose volume the images are in. Empty: in the pod, and gone with it."""
    replicas: int
    default_route: bool
    read_only: bool
    strategy: str
    """How pods are replaced; empty if nobody says."""
    log_level: str
    node_selector: Mapping[str, str]
    tolerations: tuple[Object, ...]


def settings_of(config: Object) -> Settings:
    spec = config.get("spec") or {}
    return Settings(
        claim=_claim(spec.get("storage") or {}),
        replicas=int(spec.get("replicas", 1)),
        default_route=bool(spec.get("defaultRoute")),
        read_only=bool(spec.get("readOnly")),
        strategy=str(spec.get("rolloutStrategy") or ""),
        log_level=_LEVELS.get(str(spec.get("logLevel")), "info"),
        node_selector=spec.get("nodeSelector") or {},
        tolerations=tuple(spec.get("tolerations") or ()),
    )


def _claim(storage: Mapping[str, Any]) -> str:
    kinds = sorted(storage.keys() - {"managementState"})
    if not kinds:
        raise UnfitError(
            "StorageNotConfigured",
            "storage backend not configured",
            fix="set spec.storage to pvc: {claim: } or emptyDir: {}",
        )
    if len(kinds) > 1:
        # Whichever was taken, images would be where somebody does not look for them.
        raise UnfitError(
            "StorageNotConfigured",
            f"storage is to be one, and not {' and '.join(kinds)}",
            fix=f"take the others out of spec.storage: a merge patch does that with {kinds[0]}: null",
        )
    if kinds[0] not in _STORAGES:
        raise UnfitError(
            "StorageNotSupported",
            f"storage backend {kinds[0]} is not one that Falsework has",
            cause="its registry keeps images in a file system",
            fix=f"set spec.storage to one of {', '.join(_STORAGES)}",
        )
    return str(storage["pvc"].get("claim") or DEFAULT_CLAIM) if kinds[0] == "pvc" else ""
