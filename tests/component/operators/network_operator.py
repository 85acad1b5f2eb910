"""The network operator as a process of its own, with the rights its manifests give it and no others."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from real_api import RealApi

from falsework.kube.client import APPLY, Client
from falsework.manifests.cluster_objects import cluster_objects
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import Object
from falsework.manifests.operators import network
from falsework.manifests.release import api_manifests

VERSION = "1.2.3"
IMAGES = {"falsework": "registry.example/falsework:1", "flannel": "registry.example/flannel:1"}


def prepare(client: Client, *more: Object) -> None:
    """What the release has for it, and `more`."""
    definitions = [body for file, bodies in api_manifests().items() if _concerns(file) for body in bodies]
    spaces = [body for file, bodies in cluster_objects().items() if "_70_network_00" in file for body in bodies]
    reported = cluster_operators(VERSION)["0000_70_network_07_clusteroperator.yaml"]
    rights = [body for bodies in network.manifests(VERSION, IMAGES).values() for body in bodies]
    for body in (*definitions, *spaces, *reported, *rights, *more):
        metadata = body["metadata"]
        resource = client.resource_of(body)
        place = metadata.get("namespace", "")
        made = client.patch(resource, metadata["name"], body, place, kind=APPLY)
        if body.get("status") and body["kind"] in ("Infrastructure", "Network"):
            client.replace(resource, {**made, "status": body["status"]}, "status")


def _concerns(file: str) -> bool:
    return any(plural in file for plural in ("networks", "infrastructures", "clusteroperators"))


def kubeconfig_of(api: RealApi, name: str, namespace: str) -> Path:
    """Of a service account."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    status, answer = api.client().raw("POST", path, request)
    assert status == 201, answer
    admin = json.loads(json.dumps(_parsed(api.kubeconfig)))
    admin["users"] = [{"name": name, "user": {"token": json.loads(answer)["status"]["token"]}}]
    admin["contexts"][0]["context"]["user"] = name
    result = api.folder / f"{name}.kubeconfig"
    result.write_text(json.dumps(admin))
    return result


def _parsed(path: Path) -> Object:
    import yaml

    found: Object = yaml.safe_load(path.read_text())
    return found


@contextlib.contextmanager
def network_operator(api: RealApi, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *(sys.executable, "-m", "falsework.in_machine", network.NAME),
        f"--kubeconfig={kubeconfig_of(api, network.NAME, network.NAMESPACE)}",
        f"--release-version={VERSION}",
        "--listen=127.0.0.1:0",
        *(f"--image={name}={reference}" for name, reference in IMAGES.items()),
    ]
    with log.open("ab") as output:
        child = subprocess.Popen(argv, stdout=output, stderr=output, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(15)
        finally:
            child.kill()
            child.wait()
