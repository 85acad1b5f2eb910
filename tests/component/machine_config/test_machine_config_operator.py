"""The machine-config operator as a process against a real API, with exactly the rights that its manifests give."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from machine_config_cluster import VERSION, machine_config_cluster, manifests_of, register
from operator_process import OperatorProcess, account_of, operator_process, until
from real_api import RealApi

from falsework.assets.ignition import File, config
from falsework.assets.objects import machine_config
from falsework.kube.client import Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DAEMON_SETS,
    MACHINE_CONFIG_POOLS,
    MACHINE_CONFIGS,
    NODES,
    SCHEDULERS,
)
from falsework.node_roles.rules import CONTROL_PLANE, MASTER, WORKER
from falsework.operators.machine_config import names

PROGRAM = ["-m", "falsework.in_machine", "machine-config-operator"]


@pytest.fixture(scope="module")
def client(cluster_api: RealApi) -> Iterator[Client]:
    with machine_config_cluster(cluster_api) as client:
        yield client


@pytest.fixture(scope="module")
def operator(
    cluster_api: RealApi, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    kubeconfig = account_of(cluster_api, manifests_of("machine-config"))
    log = tmp_path_factory.mktemp("machine-config") / "log"
    with operator_process(cluster_api, PROGRAM, kubeconfig, log) as operator:
        yield operator
        assert not operator.said("forbidden"), "its rights are enough"


@pytest.fixture(scope="module")
def nodes(cluster_api: RealApi, client: Client, operator: OperatorProcess) -> list[str]:
    """All Nodes of the site, each with the config the installer rendered."""
    site = cluster_api.site
    machines = (*site.masters, *site.workers)
    served = {
        site.fqdn(machine): json.dumps({"time": time.time(), "config": rendered(client, str(machine.role))})
        for machine in machines
    }
    client.patch(CONFIG_MAPS, names.SERVED, {"data": served}, names.NAMESPACE)
    return [register(client, cluster_api, machine) for machine in machines]


def pool(client: Client, name: str) -> Object:
    return client.get(MACHINE_CONFIG_POOLS, name)


def rendered(client: Client, name: str) -> str:
    return str(pool(client, name)["spec"]["configuration"]["name"])


def said(client: Client, name: str, kind: str) -> tuple[str, str]:
    entry = next(entry for entry in pool(client, name)["status"]["conditions"] if entry["type"] == kind)
    return entry["status"], entry.get("message", "")


def labels(client: Client, node: str) -> set[str]:
    return {key for key in client.get(NODES, node)["metadata"].get("labels", {}) if key.startswith("node-role")}


def taints(client: Client, node: str) -> list[str]:
    return [taint["key"] for taint in client.get(NODES, node)["spec"].get("taints", ()) if taint["key"] == MASTER]


def test_what_was_installed_stays_as_it_is(client: Client, operator: OperatorProcess, nodes: list[str]) -> None:
    """The same configs make the same rendered one: nothing new, and every machine is up to date."""
    before = {item["metadata"]["name"] for item in client.list(MACHINE_CONFIGS).items}
    for name, count in (("master", 3), ("worker", 2)):
        until(lambda name=name: said(client, name, "Updated")[0] == "True", operator)  # type: ignore[misc]
        until(lambda name=name, count=count: counts(client, name) == [count] * 3, operator)  # type: ignore[misc]
        assert said(client, name, "Updated")[1] == f"All nodes are updated with {rendered(client, name)}"
        assert said(client, name, "Degraded")[0] == said(client, name, "RenderDegraded")[0] == "False"
    assert {item["metadata"]["name"] for item in client.list(MACHINE_CONFIGS).items} == before
    assert labels(client, nodes[0]) == {MASTER, CONTROL_PLANE}
    assert labels(client, nodes[-1]) == {WORKER}


def counts(client: Client, name: str) -> list[int]:
    status = pool(client, name)["status"]
    return [int(status.get(key, -1)) for key in ("machineCount", "updatedMachineCount", "readyMachineCount")]


def test_masters_for_everybody_and_back(client: Client, operator: OperatorProcess, nodes: list[str]) -> None:
    client.patch(SCHEDULERS, "cluster", {"spec": {"mastersSchedulable": True}})
    until(
        lambda: labels(client, nodes[0]) == {MASTER, CONTROL_PLANE, WORKER} and not taints(client, nodes[0]), operator
    )
    # Still in the pool of the masters alone.
    assert pool(client, "worker")["status"]["machineCount"] == 2
    client.patch(SCHEDULERS, "cluster", {"spec": {"mastersSchedulable": False}})
    until(
        lambda: labels(client, nodes[0]) == {MASTER, CONTROL_PLANE} and taints(client, nodes[0]) == [MASTER], operator
    )


def test_a_changed_config_is_rendered_and_honestly_not_there(
    client: Client, operator: OperatorProcess, nodes: list[str]
) -> None:
    until(lambda: said(client, "worker", "Updated")[0] == "True", operator)
    before = rendered(client, "worker")
    client.create(MACHINE_CONFIGS, machine_config("50-own", "worker", config(files=[File("/etc/own", b"own")])))
    until(lambda: rendered(client, "worker") != before, operator)
    until(lambda: said(client, "worker", "Updating")[0] == "True", operator)
    assert said(client, "worker", "Updated")[0] == "False"
    assert f"has {before}" in said(client, "worker", "Updating")[1]
    status = pool(client, "worker")["status"]
    assert status["configuration"]["name"] == before, "what all have"
    made = client.get(MACHINE_CONFIGS, rendered(client, "worker"))
    assert made["metadata"]["ownerReferences"][0]["name"] == "worker"
    assert VERSION in made["metadata"]["annotations"].values()
    client.delete(MACHINE_CONFIGS, "50-own")
    until(lambda: rendered(client, "worker") == before, operator)
    until(lambda: said(client, "worker", "Updated")[0] == "True", operator)


def test_a_config_that_cannot_be_merged_changes_nothing(client: Client, operator: OperatorProcess) -> None:
    before = rendered(client, "worker")
    bad = machine_config("51-bad", "worker", {"ignition": {"version": "2.2.0"}})
    client.create(MACHINE_CONFIGS, bad)
    until(lambda: said(client, "worker", "Degraded")[0] == "True", operator)
    assert "MachineConfig 51-bad" in said(client, "worker", "RenderDegraded")[1]
    assert rendered(client, "worker") == before
    client.delete(MACHINE_CONFIGS, "51-bad")
    until(lambda: said(client, "worker", "Degraded")[0] == "False", operator)


def test_the_cluster_operator_is_available_when_machines_can_be_served(
    client: Client, operator: OperatorProcess, nodes: list[str]
) -> None:
    def available() -> str:
        found = client.get(CLUSTER_OPERATORS, "machine-config")["status"]["conditions"]
        return str(next(entry["status"] for entry in found if entry["type"] == "Available"))

    until(lambda: available() == "False", operator)
    (daemon_set,) = manifests_of("machine-config-server")["0000_80_machine-config-server_06_daemonset.yaml"]
    client.create(DAEMON_SETS, daemon_set)
    status = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 3, "numberMisscheduled": 0}
    client.patch(DAEMON_SETS, "machine-config-server", {"status": status}, names.NAMESPACE, subresource="status")
    until(lambda: available() == "True", operator)
    client.delete(DAEMON_SETS, "machine-config-server", names.NAMESPACE)
