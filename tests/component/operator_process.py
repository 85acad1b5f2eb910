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

from falsework.assets.serialize import to_yaml
from falsework.kube.client import APPLY, ApiError, Client, Object, Unreachable
from falsework.manifests.objects import Manifests

VERSION = "1.2.3"
PATIENCE = 180.0
POD = ["-m", "falsework.in_machine"]
"""What pods run Python with, before the name of the entry point."""


@dataclass
class OperatorProcess:
    process: subprocess.Popen[bytes]
    log: Path
    port: int

    def lines(self) -> list[dict[str, Any]]:
        """Of its log. The last one may be on its way."""
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]

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
    bodies = [body for file, bodies in manifests.items() if file.endswith("_rbac.yaml") for body in bodies]
    for body in bodies:
        resource, metadata = client.resource_of(body), body["metadata"]
        client.patch(resource, metadata["name"], body, metadata.get("namespace", ""), kind=APPLY)
    account = next(body["metadata"] for body in bodies if body["kind"] == "ServiceAccount")
    name, namespace = account["name"], account["namespace"]
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    status, answer = client.raw("POST", path, request)
    assert status == 201, answer
    config = yaml.safe_load(api.kubeconfig.read_bytes())
    config["users"][0]["user"] = {"token": json.loads(answer)["status"]["token"]}
    result = api.folder / "kubeconfigs" / f"{namespace}-{name}.kubeconfig"
    result.write_bytes(to_yaml(config))
    _until_in_force(api.client(result), account, bodies)
    return result


def _until_in_force(own: Client, account: Object, bodies: Sequence[Object]) -> None:
    """The API server hears of rights by a watch: those just given it may refuse for another moment."""
    roles = {_place(body["kind"], body["metadata"]): body["rules"] for body in bodies if "rules" in body}
    subject = (account["namespace"], account["name"])
    deadline = time.monotonic() + PATIENCE
    for binding in bodies:
        if subject not in [(one.get("namespace"), one["name"]) for one in binding.get("subjects") or ()]:
            continue
        namespace = binding["metadata"].get("namespace", "")
        role = _place(binding["roleRef"]["kind"], {"namespace": namespace, **binding["roleRef"]})
        wanted = [rule for rule in roles.get(role, ()) if "resources" in rule]
        while lacking := _lacking(own, namespace or "default", wanted):
            assert time.monotonic() < deadline, f"{subject} has not got its rights: {lacking}"
            time.sleep(0.02)


def _place(kind: str, named: Object) -> tuple[str, str, str]:
    return kind, named.get("namespace", "") if kind == "Role" else "", named["name"]


def _lacking(own: Client, namespace: str, wanted: Sequence[Object]) -> list[Object]:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    status, answer = own.raw("POST", path, {**review, "spec": {"namespace": namespace}})
    has = json.loads(answer)["status"]["resourceRules"] if status == 201 else []
    return [rule for rule in wanted if rule not in has]


def until(condition: Callable[[], object], operator: OperatorProcess, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ApiError, Unreachable, KeyError, StopIteration):
            if condition():
                return
        assert operator.process.poll() is None, operator.log.read_text()
        assert time.monotonic() < deadline, operator.log.read_text()
        time.sleep(0.02)
