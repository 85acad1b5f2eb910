"""Merging a pool's MachineConfigs into the one its machines get, as the installer did."""

from __future__ import annotations

from collections.abc import Iterable

from falsework.assets.rendered_config import RENDERED, Rendered, render, role_of
from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.operators.machine_config.selection import labels_of, selects

_CONTROLLER_VERSION = "machineconfiguration.openshift.io/generated-by-controller-version"


def rendered_for(pool: Object, configs: Iterable[Object]) -> Rendered:
    """FalseworkError says which of them cannot be merged, and why."""
    name = str(pool["metadata"]["name"])
    selector = (pool.get("spec") or {}).get("machineConfigSelector")
    parts = [config for config in configs if _is_part(config) and selects(selector, labels_of(config))]
    if not parts:
        raise FalseworkError(
            f"no MachineConfig is for the pool {name}", fix="look at its machineConfigSelector, and at their labels"
        )
    for part in parts:
        role_of(f"MachineConfig {part['metadata']['name']}", part)
    return render(name, parts)


def with_origin(rendered: Rendered, pool: Object, version: str) -> Object:
    """The merged MachineConfig as it goes into the cluster: who made it, and for whom."""
    metadata = {
        **rendered.machine_config["metadata"],
        "annotations": {_CONTROLLER_VERSION: version},
        "ownerReferences": [
            {
                "apiVersion": pool["apiVersion"],
                "kind": pool["kind"],
                "name": pool["metadata"]["name"],
                "uid": pool["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    return {**rendered.machine_config, "metadata": metadata}


def _is_part(config: Object) -> bool:
    return not str(config["metadata"]["name"]).startswith(RENDERED)
