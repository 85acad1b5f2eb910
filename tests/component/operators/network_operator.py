"""The network operator as a process of its own, with the rights its manifests give it and no others."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from operator_process import POD, VERSION, OperatorProcess, account_of, operator_process
from real_api import RealApi

from falsework.kube.client import APPLY, Client
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import Object
from falsework.manifests.operators import network

IMAGES = {"falsework": "registry.example/falsework:1", "flannel": "registry.example/flannel:1"}


@contextlib.contextmanager
def described(client: Client, *site: Object) -> Iterator[None]:
    """With what the release reports of it, and the objects of a site; as it was, afterwards."""
    with contextlib.ExitStack() as undo:
        for body in (*cluster_operators(VERSION)["0000_70_network_07_clusteroperator.yaml"], *site):
            undo.callback(_put_back, client, body, _live(client, body))
            made = client.patch(client.resource_of(body), body["metadata"]["name"], body, kind=APPLY)
            if body.get("status") and body["kind"] == "Infrastructure":
                client.replace(client.resource_of(body), {**made, "status": body["status"]}, "status")
        yield


def _live(client: Client, body: Object) -> Object | None:
    status, answer = client.raw("GET", client.resource_of(body).path(name=body["metadata"]["name"]))
    return json.loads(answer) if status == 200 else None


def _put_back(client: Client, body: Object, before: Object | None) -> None:
    """Without the status it has got meanwhile."""
    client.delete(client.resource_of(body), body["metadata"]["name"])
    if before is not None:
        metadata = {"name": before["metadata"]["name"]}
        client.create(client.resource_of(body), {**before, "metadata": metadata})


def network_operator(api: RealApi, log: Path) -> AbstractContextManager[OperatorProcess]:
    account = account_of(api, network.manifests(VERSION, IMAGES))
    images = [f"--image={name}={reference}" for name, reference in IMAGES.items()]
    return operator_process(api, [*POD, network.NAME], account, log, *images)
