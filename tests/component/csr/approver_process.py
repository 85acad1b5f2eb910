"""The approver as it runs on the bootstrap machine: the one file with our code, as a process, with files of its own."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_api import RealApi
from rights import until_in_force

from eventually import PATIENCE, eventually
from falsework.assets import join
from falsework.assets.pki import Pair, Subject, Use, Validity, certificate_pem, issue, key_pem, load_pair, utc_now
from falsework.csr.knowledge import BOOT_ID
from falsework.kube.client import ApiError, Client, Object
from falsework.kube.resources import CLUSTER_ROLE_BINDINGS, CSRS, EVENTS, NODES
from falsework.machine_code import machine_code


class ApproverProcess:
    def __init__(self, api: RealApi, folder: Path) -> None:
        self.api = api
        self.folder = folder
        self.admin = api.client()
        self.done = folder / "bootkube.done"
        self._served = folder / "served.json"
        self._decisions = folder / "decisions.json"
        self._child: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log").mkdir(exist_ok=True)
        (folder / "falsework.pyz").write_bytes(machine_code("approve-csr"))
        site = api.site
        inventory = [
            {
                "name": site.fqdn(machine),
                "role": str(machine.role),
                "mac": machine.mac,
                "address": str(machine.address),
            }
            for machine in site.machines
        ]
        (folder / "inventory.json").write_text(json.dumps(inventory))
        self.serve_all()

    # The process

    def start(self, *more: str) -> None:
        words = (
            *(sys.executable, "-I", str(self.folder / "falsework.pyz"), "approve-csr", str(self.api.kubeconfig)),
            *(f"--inventory={self.folder / 'inventory.json'}", f"--served={self._served}"),
            *(f"--decisions={self._decisions}", f"--done={self.done}", *more),
        )
        # Its records go to the machine's /var/log, which for it is another folder than ours.
        view = ("unshare", "--mount", "--propagation", "private", "--", "sh", "-ec")
        show = 'mount --bind "$1" /var/log; shift; exec "$@"'
        with (self.folder / "output").open("ab") as output:
            self._child = subprocess.Popen(
                ("setpriv", "--pdeathsig", "KILL", "--", *view, show, "sh", str(self.folder / "log"), *words),
                stdout=output,
                stderr=output,
            )

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._child is not None:
            self._child.send_signal(how)
            self._child.wait(PATIENCE)
            self._child = None

    def wait_for_end(self, seconds: float = PATIENCE) -> int:
        assert self._child is not None
        code = self._child.wait(seconds)
        self._child = None
        return code

    def has_begun(self) -> bool:
        return self._decisions.exists()

    def forget_decisions(self) -> None:
        """While it does not run."""
        self._decisions.unlink()

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    def records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / "log/openshift/approve-csr.json").read_text())
        return found

    # What it knows, and what it says

    def serve_all(self) -> None:
        """Every machine has fetched its config."""
        site = self.api.site
        self.set_served(*(site.fqdn(machine) for machine in (*site.masters, *site.workers)))

    def set_served(self, *nodes: str, boot: str | None = None) -> None:
        boot = boot or BOOT_ID.read_text().strip()
        draft = self._served.with_suffix(".draft")
        draft.write_text(
            json.dumps({node: {"time": time.time(), "boot": boot, "config": "rendered"} for node in nodes})
        )
        draft.replace(self._served)

    def decision(self, name: str) -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError):
            for entry in json.loads(self._decisions.read_text())["requests"]:
                if entry["name"] == name:
                    return dict(entry)
        return None

    def events_about(self, name: str) -> list[Object]:
        # By its uid: another test's request may have had the same name.
        uid = self.admin.get(CSRS, name)["metadata"]["uid"]
        return self.admin.list(EVENTS, "default", fields=f"involvedObject.uid={uid}").items

    def conditions(self, name: str) -> dict[str, str]:
        found = self.admin.get(CSRS, name).get("status") or {}
        return {entry["type"]: entry["message"] for entry in found.get("conditions") or ()}

    def wait_for_certificate(self, name: str) -> bytes:
        eventually(lambda: (self.admin.get(CSRS, name).get("status") or {}).get("certificate"))
        return bytes(self.admin.get(CSRS, name)["status"]["certificate"], "ascii")

    # Who asks

    def node(self, name: str) -> str:
        return self.api.site.fqdn(self.api.machine(name))

    def joining(self, name: str) -> Client:
        """With the very credential the machine gets."""
        return self.api.client(self.api.kubeconfig_for(f"join/{name}"))

    def as_node(self, name: str) -> Client:
        return self.as_subject(Subject(f"system:node:{self.node(name)}", ("system:nodes",)), "kubelet-signer")

    def as_subject(self, subject: Subject, signer: str = "kubelet-bootstrap-kubeconfig-signer") -> Client:
        tls = self.api.folder / "tls"
        by: Pair = load_pair((tls / f"{signer}.crt").read_bytes(), (tls / f"{signer}.key").read_bytes())
        pair = issue(subject, Validity.DAY, utc_now(), signer=by, uses=frozenset({Use.CLIENT}))
        name = f"subject-{abs(hash(subject))}"
        return self.api.client(self.api.kubeconfig_with(name, certificate_pem(pair.certificate), key_pem(pair.key)))

    def make_node(self, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node(name)}}
        with contextlib.suppress(ApiError):
            self.admin.create(NODES, body)

    def remove_nodes_and_requests(self) -> None:
        for resource in (NODES, CSRS):
            for item in self.admin.list(resource).items:
                with contextlib.suppress(ApiError):
                    self.admin.delete(resource, item["metadata"]["name"])


def allow_requests(client: Client) -> None:
    """The rights of joining machines and of nodes, as the cluster's manifests give them; and of strangers, who may
    try here. In force when this is back."""
    bindings = []
    renewal = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
    for name, role, group in (
        ("joining", "system:node-bootstrapper", join.GROUP),
        ("renewing", renewal, "system:nodes"),
        ("strangers", "system:node-bootstrapper", "system:authenticated"),
    ):
        body: Object = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"test-{name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        }
        with contextlib.suppress(ApiError):
            client.create(CLUSTER_ROLE_BINDINGS, body)
        bindings.append(body)
    until_in_force(client, bindings)


@contextlib.contextmanager
def running(api: RealApi, folder: Path) -> Iterator[ApproverProcess]:
    process = ApproverProcess(api, folder)
    allow_requests(process.admin)
    process.start()
    try:
        eventually(process.has_begun)
        yield process
    finally:
        process.stop()
