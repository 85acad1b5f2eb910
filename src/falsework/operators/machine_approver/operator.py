"""machine-approver: the certificate requests of the site's machines, by the rules of the bootstrap's approver."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from falsework.csr.approver import Approver
from falsework.csr.rules import Kind, Verdict, Why
from falsework.errors import FalseworkError
from falsework.kube.client import WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, MACHINE_APPROVERS
from falsework.operators.machine_approver.knowledge import FetchedFromCluster, InventoryMachines, Look
from falsework.operators.machine_config import names
from falsework.operators.runtime.conditions import condition
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program

NAME = "machine-approver"
NAMESPACE = "openshift-cluster-machine-approver"
PORT = 9106
_LOOK = 30.0
"""Seconds between two looks at whether the approver is well; it looks at what has changed when it changes."""
_STILL = 120.0
"""Seconds without a turn of its loop after which the approver counts as one that hangs."""


def main(words: Sequence[str]) -> int:
    return operator_main(NAME, NAMESPACE, words, build, port=PORT, resource=MACHINE_APPROVERS)


def build(program: Program) -> None:
    approval = Approval(program)
    program.add(Controller("CertificateApprovalController", approval.sync, resync=_LOOK))


class Approval:
    """The approver has a loop of its own, in which a crowd of requests holds up nobody. Here it is started when this
    operator leads, and looked after."""

    def __init__(self, program: Program) -> None:
        self._program = program
        inventory = self._follow(names.INVENTORY_NAMESPACE, names.INVENTORY)
        self._fetched = FetchedFromCluster(
            self._follow(names.NAMESPACE, names.SERVED), self._follow("kube-system", "bootstrap"), inventory
        )
        self._machines = InventoryMachines(inventory)
        self._approver: Approver | None = None
        self._thread: threading.Thread | None = None

    def sync(self, _: str) -> None:
        assert self._program.status is not None
        if self._approver is None or self._thread is None or not self._thread.is_alive():
            if self._thread is not None:
                self._program.log.error("The approver has ended by a mistake, and is started again")
            self._approver = self._new()
            self._thread = threading.Thread(target=self._approver.run, args=(lambda: False,), name=NAME, daemon=True)
            self._thread.start()
        silent = time.monotonic() - self._approver.turned
        if silent > _STILL:
            raise FalseworkError(
                f"no certificate request has been looked at for {silent:.0f} s", fix=f"delete the pod in {NAMESPACE}"
            )
        self._program.status.set(condition("CertificateApprovalAvailable", True, "AsExpected"))

    def _new(self) -> Approver:
        """Nothing is lost with the last one: what it knew, the API has."""
        return Approver(
            self._program.client,
            self._machines,
            self._fetched,
            None,
            self._program.log.info,
            component=NAME,
            left_to_others=self._is_left_to_others,
            look=_LOOK,
        )

    def _is_left_to_others(self, verdict: Verdict) -> bool:
        """Requests to other signers are none of ours. Before the bootstrap machine is done, its own approver knows who
        has fetched a config from it; we do not."""
        unknown = verdict.why is Why.NOT_FETCHED and not self._fetched.bootstrap_is_complete
        return verdict.kind is Kind.OTHER or unknown

    def _noticed(self, _: WatchEvent) -> None:
        if self._approver is not None:
            self._approver.look_around()

    def _follow(self, namespace: str, name: str) -> Look:
        informer: Informer = self._program.follow(CONFIG_MAPS, namespace, fields=f"metadata.name={name}")
        informer.listen(self._noticed)
        return lambda: informer.get(name, namespace)
