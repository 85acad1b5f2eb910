"""The network operator as a process of its own, with the rights its manifests give it and no others."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from operator_process import POD, VERSION, OperatorProcess, account_of, operator_process
from real_api import RealApi

from falsework.kube.client import APPLY, Client
from falsework.manifests.cluster_objects import cluster_objects
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import Object
from falsework.manifests.operators import network
from falsework.manifests.release import api_manifests

IMAGES = {"falsework": "registry.example/falsework:1", "flannel": "registry.example/flannel:1"}


def prepare(client: Client, *more: Object) -> None:
    """What the release has for it, and `more`."""
    definitions = [body for file, bodies in api_manifests().items() if _concerns(file) for body in bodies]
    spaces = [body for file, bodies in cluster_objects().items() if "_70_network_00" in file for body in bodies]
    reported = cluster_operators(VERSION)["0000_70_network_07_clusteroperator.yaml"]
    for body in (*definitions, *spaces, *reported, *more):
        metadata = body["metadata"]
        resource = client.resource_of(body)
        place = metadata.get("namespace", "")
        made = client.patch(resource, metadata["name"], body, place, kind=APPLY)
        if body.get("status") and body["kind"] in ("Infrastructure", "Network"):
            client.replace(resource, {**made, "status": body["status"]}, "status")


def _concerns(file: str) -> bool:
    return any(plural in file for plural in ("networks", "infrastructures", "clusteroperators"))


def network_operator(api: RealApi, log: Path) -> AbstractContextManager[OperatorProcess]:
    account = account_of(api, network.manifests(VERSION, IMAGES))
    images = [f"--image={name}={reference}" for name, reference in IMAGES.items()]
    return operator_process(api, [*POD, network.NAME], account, log, *images)
