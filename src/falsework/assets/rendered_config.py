"""Machine configs of a pool merged into the one its machines get: by the installer, and by the operator in the cluster.

Both make the same of the same, so a cluster in which nothing was changed keeps what it was installed with.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

from falsework.assets import ignition
from falsework.assets.ignition import Config, config
from falsework.assets.plain_json import to_json
from falsework.assets.served_config import served_config
from falsework.errors import UsageError
from falsework.manifests.objects import Object, named

API = "machineconfiguration.openshift.io/v1"
RENDERED = "rendered-"
"""How the names of merged ones begin."""
_ROLE_LABEL = "machineconfiguration.openshift.io/role"
_SALT = b"falsework"


@dataclass(frozen=True)
class Rendered:
    """All machine configs of a pool in one."""

    name: str
    machine_config: Object
    pool: Object

    @property
    def served(self) -> Config:
        """What the Machine Config Server answers with, but for a machine's own credential."""
        return served_config(self.machine_config)


def role_of(where: str, document: Object) -> str | None:
    """The role a machine config is for; UsageError if it cannot be merged. `where` is what people know it by."""
    try:
        metadata, spec = document["metadata"], document["spec"]
        version = spec.get("config", {}).get("ignition", {}).get("version", ignition.SPEC)
        labels = metadata.get("labels") or {}
        role = labels.get(_ROLE_LABEL)
        if not str(metadata["name"]) or not str(version).startswith("3."):
            raise ValueError(f"its Ignition config has spec {version}")
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{where}: this MachineConfig cannot be used",
            cause=str(error) if isinstance(error, ValueError) else "metadata.name or spec.config is missing",
            fix=f"give it a name, and in spec.config an Ignition config of spec {ignition.SPEC}",
        ) from None
    return str(role) if role else None


def render(role: str, configs: list[Object]) -> Rendered:
    """Merged in the order of their names, so that 99-… has the last word over 00-…."""
    ordered = sorted(configs, key=lambda entry: str(entry["metadata"]["name"]))
    specs = [entry["spec"] for entry in ordered]
    merged = functools.reduce(ignition.merge, (spec.get("config") or {} for spec in specs), config())
    merged["ignition"]["version"] = ignition.SPEC
    spec: dict[str, Any] = {"config": merged, "kernelArguments": [], "extensions": []}
    for entry in specs:
        for key, value in entry.items():
            if key in ("kernelArguments", "extensions"):
                spec[key] += [word for word in value or [] if word not in spec[key]]
            elif key != "config" and value:
                spec[key] = value
    digest = hashlib.md5(_SALT + to_json(spec), usedforsecurity=False).hexdigest()
    name = f"{RENDERED}{role}-{digest}"
    whole = named(API, "MachineConfig", name, spec=spec)
    names = [str(entry["metadata"]["name"]) for entry in ordered]
    return Rendered(name, whole, _pool(role, name, names))


def _pool(role: str, rendered: str, names: list[str]) -> Object:
    configuration = {
        "name": rendered,
        "source": [{"apiVersion": API, "kind": "MachineConfig", "name": name} for name in names],
    }
    pool = named(API, "MachineConfigPool", str(role))
    pool["metadata"]["labels"] = {f"pools.operator.machineconfiguration.openshift.io/{role}": ""}
    pool["spec"] = {
        "configuration": configuration,
        "machineConfigSelector": {"matchLabels": {_ROLE_LABEL: str(role)}},
        "maxUnavailable": 1,
        "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{role}": ""}},
        "paused": False,
    }
    pool["status"] = {"configuration": configuration}
    return pool
