"""The cluster's default StorageClass: made when it is missing. What becomes of it is its owner's business."""

from __future__ import annotations

from falsework.kube.client import ApiError, Object
from falsework.kube.resources import STORAGE_CLASSES, STORAGES
from falsework.manifests.objects import named
from falsework.operators.runtime.conditions import condition
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.program import Program
from falsework.operators.storage.claims import PROVISIONER

CLASS = "falsework-local"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def storage_class(*, is_default: bool) -> Object:
    """A volume is made where the first pod goes: made earlier, it would decide that."""
    result = named(
        "storage.k8s.io/v1",
        "StorageClass",
        CLASS,
        provisioner=PROVISIONER,
        reclaimPolicy="Delete",
        volumeBindingMode="WaitForFirstConsumer",
        allowVolumeExpansion=False,
    )
    result["metadata"]["annotations"] = {_DEFAULT: str(is_default).lower()}
    return result


def default_of(classes: list[Object]) -> str:
    """The name of the one that claims get which name none, if there is one."""
    marked = (one for one in classes if (one["metadata"].get("annotations") or {}).get(_DEFAULT) == "true")
    return next((str(one["metadata"]["name"]) for one in marked), "")


def add_storage_class(program: Program) -> None:
    status = program.status
    assert status is not None
    classes, operators = program.follow(STORAGE_CLASSES), program.follow(STORAGES)

    def sync(_: str) -> None:
        told = (operators.get("cluster") or {}).get("spec") or {}
        if classes.get(CLASS) is None and told.get("managementState") != "Unmanaged":
            other = default_of(classes.objects())
            try:
                program.client.create(STORAGE_CLASSES, storage_class(is_default=not other))
            except ApiError as error:
                if not error.is_conflict:
                    raise
            else:
                kind = f"; the default is {other}" if other else ", the default"
                program.events.normal("StorageClassCreated", f"StorageClass {CLASS} is there{kind}")
        known = default_of(classes.objects())
        said = f"The default StorageClass is {known}" if known else "There is no default StorageClass"
        status.set(
            condition("DefaultStorageClassControllerAvailable", True, "AsExpected", said),
            condition("DefaultStorageClassControllerProgressing", False, "AsExpected"),
        )

    program.add(Controller("DefaultStorageClassController", sync, [(classes, always), (operators, always)], 300.0))
