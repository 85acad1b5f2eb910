"""An operator as a process of its own, with the rights its manifests give it and no others, as in its pod.

kubeconfig = account_of(api, manifests(version, images))
with operator_process(api, ["-m", "falsework.in_machine", "etcd-operator"], kubeconfig, tmp_path / "log") as operator:
    until(lambda: operator.said("Adding member"), operator)
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from real_api import RealApi, free_port
from rights import until_in_force

from eventually import PATIENCE
from falsework.assets.serialize import to_yaml
from falsework.kube.client import APPLY, ApiError, Client, Unreachable
from falsework.manifests.objects import Manifests
from json_lines import json_lines

VERSION = "1.2.3"
POD = ["-m", "falsework.in_machine"]
"""What pods run Python with, before the name of the entry point."""


@dataclass
class OperatorProcess:
    process: subprocess.Popen[bytes]
    log: Path
    port: int

    def lines(self) -> list[dict[str, Any]]:
        return json_lines(self.log)

    def said(self, text: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if text in line["msg"]]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def operator_process(
    api: RealApi, program: Sequence[str], kubeconfig: Path | None, log: Path, *words: str
) -> Iterator[OperatorProcess]:
    """`program` is what Python is to run. Without a kubeconfig it is the administrator."""
    port = free_port()
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "--", sys.executable, *program),
        *(f"--kubeconfig={kubeconfig or api.kubeconfig}", f"--release-version={VERSION}"),
        *(f"--listen=127.0.0.1:{port}", *words),
    ]
    with log.open("ab") as output:
        child = subprocess.Popen(argv, stdout=output, stderr=output)
    operator = OperatorProcess(child, log, port)
    try:
        yield operator
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(PATIENCE)
        finally:
            operator.kill()


def account_of(api: RealApi, manifests: Manifests) -> Path:
    """The rights in these manifests, given; and a kubeconfig of the first service account: the operator's own."""
    client = api.client()
    account = grant(client, manifests)[0]
    name, namespace = account["name"], account["namespace"]
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    status, answer = client.raw("POST", path, request)
    assert status == 201, answer
    config = yaml.safe_load(api.kubeconfig.read_bytes())
    config["users"][0]["user"] = {"token": json.loads(answer)["status"]["token"]}
    result = api.folder / "kubeconfigs" / f"{namespace}-{name}.kubeconfig"
    result.write_bytes(to_yaml(config))
    return result


def grant(client: Client, manifests: Manifests) -> list[dict[str, str]]:
    """The service accounts and rights among these manifests, applied and in force; the accounts."""
    bodies = [body for file, bodies in manifests.items() if file.endswith("_rbac.yaml") for body in bodies]
    for body in bodies:
        resource, metadata = client.resource_of(body), body["metadata"]
        client.patch(resource, metadata["name"], body, metadata.get("namespace", ""), kind=APPLY)
    until_in_force(client, [body for body in bodies if body["kind"].endswith("RoleBinding")])
    return [body["metadata"] for body in bodies if body["kind"] == "ServiceAccount"]


def until(condition: Callable[[], object], operator: OperatorProcess, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ApiError, Unreachable, KeyError, StopIteration):
            if condition():
                return
        assert operator.process.poll() is None, operator.log.read_text()
        assert time.monotonic() < deadline, operator.log.read_text()
        time.sleep(0.02)
