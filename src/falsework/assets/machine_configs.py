"""Machine configs: the parts a role's config is made of, and their merging into the one the server hands out."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

from falsework.assets import ignition, node
from falsework.assets.graph import Files
from falsework.assets.ignition import Config, File, config
from falsework.assets.node import NodeFacts
from falsework.assets.objects import Object, machine_config, named
from falsework.assets.serialize import documents_in, to_json
from falsework.assets.served_config import served_config
from falsework.errors import UsageError
from falsework.site.model import Role

_API = "machineconfiguration.openshift.io/v1"
_ROLE_LABEL = "machineconfiguration.openshift.io/role"
_SALT = b"falsework"


@dataclass(frozen=True)
class Rendered:
    """All machine configs of a pool in one."""

    name: str
    machine_config: Object
    pool: Object
    served: Config
    """What the Machine Config Server answers with, but for a machine's own credential."""


def built_in(
    role: Role, facts: NodeFacts, client_ca: bytes, registry_ca: bytes, pull_secret: str | None
) -> list[Object]:
    guard_rules, guard = node.pod_guard()
    base = [
        guard_rules,
        node.api_server_url(facts.api_int_host),
        File("/etc/sysctl.d/90-forwarding.conf", b"net.ipv4.ip_forward = 1\n"),
        File("/etc/kubernetes/kube-proxy.conf", node.kube_proxy_config(facts.cluster_cidrs)),
    ]
    if pull_secret:
        base.append(File("/var/lib/kubelet/config.json", pull_secret.encode(), 0o600))
    kubelet_files = node.kubelet_files(node.node_kubelet_config(role, facts.dns_address), client_ca)
    runtime_files = node.runtime_files(facts.sandbox_image, facts.registry_url, registry_ca)
    return [
        machine_config(f"00-{role}", role, config(files=base, units=[*node.kube_proxy_units(), guard])),
        machine_config(
            f"01-{role}-container-runtime",
            role,
            config(files=runtime_files, units=[node.containerd_unit()]),
        ),
        machine_config(
            f"01-{role}-kubelet", role, config(files=kubelet_files, units=[node.kubelet_unit(standalone=False)])
        ),
    ]


def of_role(role: Role, manifests: Files) -> list[Object]:
    """The machine configs for a role among manifests: ours, and those a person added."""
    return [
        document
        for path, content in manifests.items()
        for document in documents_in(path, content)
        if document.get("apiVersion") == _API and document["kind"] == "MachineConfig" and _role(path, document) == role
    ]


def _role(path: str, document: Object) -> str | None:
    """The role a machine config is for; UsageError if it cannot be merged."""
    try:
        metadata, spec = document["metadata"], document["spec"]
        version = spec.get("config", {}).get("ignition", {}).get("version", ignition.SPEC)
        labels = metadata.get("labels") or {}
        role = labels.get(_ROLE_LABEL)
        if not str(metadata["name"]) or not str(version).startswith("3."):
            raise ValueError(f"its Ignition config has spec {version}")
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path}: this MachineConfig cannot be used",
            cause=str(error) if isinstance(error, ValueError) else "metadata.name or spec.config is missing",
            fix=f"give it a name, and in spec.config an Ignition config of spec {ignition.SPEC}",
        ) from None
    return str(role) if role else None


def render(role: Role, configs: list[Object]) -> Rendered:
    """Merged in the order of their names, so that 99-… has the last word over 00-…."""
    ordered = sorted(configs, key=lambda entry: str(entry["metadata"]["name"]))
    specs = [entry["spec"] for entry in ordered]
    merged = functools.reduce(ignition.merge, (spec.get("config", {}) for spec in specs), config())
    merged["ignition"]["version"] = ignition.SPEC
    spec: dict[str, Any] = {"config": merged, "kernelArguments": [], "extensions": []}
    for entry in specs:
        for key, value in entry.items():
            if key in ("kernelArguments", "extensions"):
                spec[key] += [word for word in value or [] if word not in spec[key]]
            elif key != "config" and value:
                spec[key] = value
    digest = hashlib.md5(_SALT + to_json(spec), usedforsecurity=False).hexdigest()
    name = f"rendered-{role}-{digest}"
    whole = named(_API, "MachineConfig", name, spec=spec)
    names = [str(entry["metadata"]["name"]) for entry in ordered]
    return Rendered(name, whole, _pool(role, name, names), served_config(whole))


def _pool(role: Role, rendered: str, names: list[str]) -> Object:
    configuration = {
        "name": rendered,
        "source": [{"apiVersion": _API, "kind": "MachineConfig", "name": name} for name in names],
    }
    pool = named(_API, "MachineConfigPool", str(role))
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
