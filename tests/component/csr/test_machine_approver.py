"""The cluster's own approver as a process against a real API, with exactly the rights that its manifests give."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from approver_process import ApproverProcess, allow_requests
from csr_maker import CLIENT_USAGES, request_pem, submit
from operator_process import OperatorProcess, account_of, operator_process, until
from real_api import RealApi

from falsework.csr.request import CLIENT_SIGNER
from falsework.kube.client import APPLY
from falsework.kube.resources import CLUSTER_OPERATORS, CONFIG_MAPS
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import config_map
from falsework.manifests.operators import machine_approver
from falsework.operators.machine_config import names
from falsework.operators.runtime.conditions import status_of

PROGRAM = ["-m", "falsework.in_machine", "machine-approver"]
BOOTSTRAP = ("bootstrap", "kube-system")


@pytest.fixture
def site(cluster_api: RealApi, tmp_path: Path) -> Iterator[ApproverProcess]:
    """The machines and their credentials; the bootstrap's own approver does not run."""
    site = ApproverProcess(cluster_api, tmp_path / "site")
    client = site.admin
    allow_requests(client)
    inventory = (site.folder / "inventory.json").read_text()
    for body in (
        config_map(names.INVENTORY, names.INVENTORY_NAMESPACE, {names.INVENTORY_KEY: inventory}),
        config_map(names.SERVED, names.NAMESPACE, {}),
    ):
        client.patch(CONFIG_MAPS, body["metadata"]["name"], body, body["metadata"]["namespace"], kind=APPLY)
    (operator,) = cluster_operators("1")["0000_50_machine-approver_07_clusteroperator.yaml"]
    reported = {key: value for key, value in operator.items() if key != "status"}
    client.patch(CLUSTER_OPERATORS, "machine-approver", reported, kind=APPLY)
    yield site
    site.remove_nodes_and_requests()
    client.delete(CLUSTER_OPERATORS, "machine-approver")
    client.delete(CONFIG_MAPS, names.INVENTORY, names.INVENTORY_NAMESPACE)
    client.patch(CONFIG_MAPS, names.SERVED, {"data": None}, names.NAMESPACE)
    if client.list(CONFIG_MAPS, "kube-system", fields="metadata.name=bootstrap").items:
        client.delete(CONFIG_MAPS, *BOOTSTRAP)


@pytest.fixture
def operator(site: ApproverProcess, tmp_path: Path) -> Iterator[OperatorProcess]:
    kubeconfig = account_of(site.api, machine_approver.manifests("1", {"falsework": "image"}))
    with operator_process(site.api, PROGRAM, kubeconfig, tmp_path / "log") as operator:
        yield operator
        assert not operator.said("forbidden"), "its rights are enough"


def ask(site: ApproverProcess, machine: str) -> str:
    return submit(site.joining(machine), request_pem(f"system:node:{site.node(machine)}"), CLIENT_SIGNER, CLIENT_USAGES)


def note_fetch(site: ApproverProcess, machine: str, ago: float = 0.0) -> None:
    fetch = json.dumps({"time": time.time() - ago, "config": "rendered"})
    site.admin.patch(CONFIG_MAPS, names.SERVED, {"data": {site.node(machine): fetch}}, names.NAMESPACE)


def is_available(site: ApproverProcess) -> bool:
    conditions = site.admin.get(CLUSTER_OPERATORS, "machine-approver")["status"]["conditions"]
    return status_of(conditions, "Available") is True


def test_what_only_the_bootstrap_knows_is_left_to_it(site: ApproverProcess, operator: OperatorProcess) -> None:
    early, late = ask(site, "master-0"), ask(site, "worker-0")
    note_fetch(site, "worker-0")
    until(lambda: "Approved" in site.conditions(late), operator)
    assert site.conditions(early) == {}
    assert site.events_about(early) == []
    # Once the bootstrap machine is done there is nobody else, and it is said why not.
    site.admin.create(CONFIG_MAPS, config_map(*BOOTSTRAP, {"status": "complete"}))
    until(lambda: site.events_about(early), operator)
    (event,) = site.events_about(early)
    assert (event["reason"], event["source"]["component"]) == ("ConfigNotFetched", "machine-approver")
    note_fetch(site, "master-0", ago=3 * 3600)
    until(lambda: operator.said("too long for a machine that joins"), operator)
    note_fetch(site, "master-0")
    until(lambda: "Approved" in site.conditions(early), operator)
    assert site.wait_for_certificate(early)
    until(lambda: is_available(site), operator)


def test_a_machine_that_comes_to_the_site_later(site: ApproverProcess, operator: OperatorProcess) -> None:
    """What it asked before is judged again by itself, once the inventory has it."""
    site.admin.create(CONFIG_MAPS, config_map(*BOOTSTRAP, {"status": "complete"}))
    whole = (site.folder / "inventory.json").read_text()
    others = [entry for entry in json.loads(whole) if entry["name"] != site.node("worker-0")]

    def knows(inventory: str) -> None:
        patch = {"data": {names.INVENTORY_KEY: inventory}}
        site.admin.patch(CONFIG_MAPS, names.INVENTORY, patch, names.INVENTORY_NAMESPACE)

    knows(json.dumps(others))
    note_fetch(site, "worker-0")
    asked = ask(site, "worker-0")
    until(lambda: site.events_about(asked), operator)
    assert site.events_about(asked)[0]["reason"] == "NoMachineOfThisSite"
    knows(whole)
    until(lambda: "Approved" in site.conditions(asked), operator)


def test_strangers_stay_outside_and_forgers_are_denied(site: ApproverProcess, operator: OperatorProcess) -> None:
    site.admin.create(CONFIG_MAPS, config_map(*BOOTSTRAP, {"status": "complete"}))
    note_fetch(site, "worker-0")
    pem = request_pem(f"system:node:{site.node('master-0')}")
    forged = submit(site.joining("worker-0"), pem, CLIENT_SIGNER, CLIENT_USAGES)
    until(lambda: "Denied" in site.conditions(forged), operator)
