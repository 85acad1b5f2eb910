"""A cluster as bootkube leaves it for machine configuration: pools, their configs, the inventory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import yaml
from real_api import RealApi

from falsework.assets.ignition import files_in
from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    MACHINE_CONFIG_POOLS,
    MACHINE_CONFIGS,
    NODES,
    SCHEDULERS,
    SECRETS,
    Resource,
)
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import Manifests, config_map, secret
from falsework.manifests.operators import machine_config
from falsework.node_roles.rules import MASTER
from falsework.operators.machine_config import names
from falsework.site.model import Machine

VERSION = "1.2.3"
_MANIFESTS = ("/opt/openshift/openshift/", "/opt/openshift/manifests/", "/etc/mcs/bootstrap/machine-")
_KINDS = {"MachineConfig": MACHINE_CONFIGS, "MachineConfigPool": MACHINE_CONFIG_POOLS, "Scheduler": SCHEDULERS}


def manifests_of(component: str) -> Manifests:
    """Of the operator, or of the server."""
    found = machine_config.manifests(VERSION, {"falsework": "image"})
    return {name: bodies for name, bodies in found.items() if name.startswith(f"0000_80_{component}_")}


@contextlib.contextmanager
def machine_config_cluster(api: RealApi, addresses: dict[str, str] | None = None) -> Iterator[Client]:
    """`addresses`: where machines are, instead of where the site has them. Everything is gone afterwards."""
    client = api.client()
    for path, content in _files(api).items():
        if path.startswith(_MANIFESTS):
            for body in yaml.safe_load_all(content):
                if body["kind"] in _KINDS:
                    apply(client, _KINDS[body["kind"]], body)
    for body in (_inventory(api, addresses or {}), config_map(names.SERVED, names.NAMESPACE, {})):
        apply(client, CONFIG_MAPS, body)
    apply(client, SECRETS, _join_credentials(api))
    (operator,) = cluster_operators(VERSION)["0000_80_machine-config_07_clusteroperator.yaml"]
    apply(client, CLUSTER_OPERATORS, {key: value for key, value in operator.items() if key != "status"})
    try:
        yield client
    finally:
        for resource in (NODES, MACHINE_CONFIG_POOLS, MACHINE_CONFIGS, SCHEDULERS):
            for item in client.list(resource).items:
                client.delete(resource, item["metadata"]["name"])
        client.delete(CONFIG_MAPS, names.INVENTORY, names.INVENTORY_NAMESPACE)
        client.delete(SECRETS, names.JOIN_SECRET, names.NAMESPACE)
        client.patch(CONFIG_MAPS, names.SERVED, {"data": None}, names.NAMESPACE)
        client.delete(CLUSTER_OPERATORS, "machine-config")


def apply(client: Client, resource: Resource, body: Object) -> None:
    metadata = body["metadata"]
    status = body.get("status")
    place = metadata.get("namespace", "") if resource.namespaced else ""
    client.patch(resource, metadata["name"], body, place, kind=APPLY)
    if status:
        with contextlib.suppress(ApiError):
            client.patch(resource, metadata["name"], {"status": status}, place, subresource="status")


def _join_credentials(api: RealApi) -> Object:
    credentials = {
        Path(path).name.removesuffix(".kubeconfig"): content
        for path, content in _files(api).items()
        if path.startswith("/etc/mcs/bootstrap/join/")
    }
    return secret(names.JOIN_SECRET, names.NAMESPACE, credentials)


def register(client: Client, api: RealApi, machine: Machine) -> str:
    """A Node as a kubelet makes it."""
    name = api.site.fqdn(machine)
    taints = [{"key": MASTER, "effect": "NoSchedule"}] if machine.name.startswith("master") else []
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": taints}}
    client.create(NODES, body)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    client.patch(NODES, name, {"status": {"conditions": [ready]}}, subresource="status")
    return name


def _files(api: RealApi) -> dict[str, bytes]:
    return files_in(json.loads((api.folder / "bootstrap.ign").read_bytes()))


def _inventory(api: RealApi, addresses: dict[str, str]) -> Object:
    files = _files(api)
    site = json.loads(files["/etc/mcs/bootstrap/site.json"])
    for machine in site["machines"]:
        machine["address"] = addresses.get(machine["name"], machine["address"])
    data = {
        names.INVENTORY_KEY: files["/opt/openshift/inventory.json"].decode(),
        names.SITE_KEY: json.dumps(site),
    }
    return config_map(names.INVENTORY, names.INVENTORY_NAMESPACE, data)
