"""What the Machine Config Server makes of a rendered MachineConfig. On the host and in the server alike."""

from __future__ import annotations

from typing import Any

from falsework.assets import ignition
from falsework.assets.ignition import Config, File, config
from falsework.assets.plain_json import to_json

JOIN_KUBECONFIG = "/etc/kubernetes/kubeconfig"
"""What a machine joins with, before it has a certificate as a node."""
CURRENT_CONFIG, DESIRED_CONFIG, STATE, REASON = (
    f"machineconfiguration.openshift.io/{name}" for name in ("currentConfig", "desiredConfig", "state", "reason")
)
"""What a node says of its config, by annotations."""
_ANNOTATIONS = "/etc/machine-config-daemon/node-annotations.json"
_CONTENT = "/etc/mcs-machine-config-content.json"


def served_config(machine_config: dict[str, Any]) -> Config:
    """Its Ignition config, the annotations a node starts with, so that it knows which config it has, and the
    MachineConfig itself, so that it knows what that is."""
    name = str(machine_config["metadata"]["name"])
    extra = [File(_ANNOTATIONS, to_json(first_annotations(name))), File(_CONTENT, to_json(machine_config), 0o600)]
    return ignition.merge(machine_config["spec"]["config"], config(files=extra))


def first_annotations(config: str) -> dict[str, str]:
    """Of a node that was made with this config: Ignition does all that is in it, or the machine does not start."""
    return {CURRENT_CONFIG: config, DESIRED_CONFIG: config, STATE: "Done"}


def with_join_credential(served: Config, kubeconfig: bytes) -> Config:
    """For the one machine it belongs to."""
    return ignition.merge(served, config(files=[File(JOIN_KUBECONFIG, kubeconfig, 0o600)]))
