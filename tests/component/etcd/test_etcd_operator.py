"""The etcd operator as a process, with its own rights, between a real API and real etcds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from operator_process import POD, VERSION, OperatorProcess, account_of, operator_process, until
from played_masters import PlayedMasters
from real_api import RealApi
from real_etcd import BOOTSTRAP, MASTERS, RealEtcd

from falsework.kube.client import APPLY, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    ETCDS,
    EVENTS,
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SECRETS,
)
from falsework.manifests.objects import config_map, named, secret
from falsework.manifests.operators import etcd as etcd_manifests
from falsework.release.inventory import Release

IMAGES = {name: f"registry.example/{name}:1" for name in ("etcd", "falsework", "pause")}
NAMESPACES = ("openshift-etcd", "openshift-etcd-operator")
PROGRAM = [*POD, "etcd-operator"]
WORDS = tuple(f"--image={name}={reference}" for name, reference in IMAGES.items())


@pytest.fixture
def etcd(release: Release, programs: Path, tmp_path: Path) -> Iterator[RealEtcd]:
    with RealEtcd.in_folder(release.install("etcd", programs), tmp_path) as running:
        yield running


@pytest.fixture
def client(cluster_api: RealApi, etcd: RealEtcd) -> Iterator[Client]:
    """With what bootkube has put there; all of it gone afterwards."""
    client = cluster_api.client()
    client.create(CLUSTER_OPERATORS, named("config.openshift.io/v1", "ClusterOperator", "etcd", spec={}))
    for body in bootkubes_objects(etcd):
        metadata = body["metadata"]
        client.patch(client.resource_of(body), metadata["name"], body, metadata["namespace"], kind=APPLY)
    yield client
    paths = [
        CLUSTER_OPERATORS.path(name="etcd"),
        CONFIG_MAPS.path("openshift-config", "machine-inventory"),
        CONFIG_MAPS.path("kube-system", "bootstrap"),
        *(NODES.path(name=name) for name in MASTERS),
    ]
    for resource in (POD_DISRUPTION_BUDGETS, PODS, CONFIG_MAPS, SECRETS, LEASES, EVENTS):
        for namespace in NAMESPACES:
            items = client.list(resource, namespace).items
            paths += [resource.path(namespace, item["metadata"]["name"]) for item in items]
    for path in paths:
        client.raw("DELETE", f"{path}?gracePeriodSeconds=0")


def bootkubes_objects(etcd: RealEtcd) -> list[Object]:
    def file(name: str) -> bytes:
        return (etcd.folder / name).read_bytes()

    inventory = [
        {"name": name, "role": "bootstrap" if name == BOOTSTRAP else "master", "address": address}
        for name, address in etcd.addresses.items()
    ]
    pair = {"tls.crt": file("client.crt"), "tls.key": file("client.key")}
    return [
        secret("etcd-client", "openshift-etcd-operator", pair, "kubernetes.io/tls"),
        config_map("etcd-ca-bundle", "openshift-etcd-operator", {"ca-bundle.crt": file("ca.crt").decode()}),
        secret("etcd-all-certs", "openshift-etcd", {"etcd-peer-master-0.crt": file("etcd-peer-master-0.crt")}),
        config_map("etcd-all-bundles", "openshift-etcd", {"server-ca-bundle.crt": file("ca.crt").decode()}),
        config_map("machine-inventory", "openshift-config", {"inventory.json": json.dumps(inventory)}),
    ]


def condition(client: Client, kind: str) -> Object:
    conditions = client.get(ETCDS, "cluster")["status"]["conditions"]
    found: Object = next(entry for entry in conditions if entry["type"] == kind)
    return found


def test_from_the_bootstraps_member_to_three(
    cluster_api: RealApi, client: Client, etcd: RealEtcd, tmp_path: Path
) -> None:
    account = account_of(cluster_api, etcd_manifests.manifests(VERSION, IMAGES))
    log = tmp_path / "operator.log"
    masters = PlayedMasters(client, etcd)
    masters.may_start.clear()
    with masters.at_work():
        with operator_process(cluster_api, PROGRAM, account, log, *WORDS) as operator:
            until(lambda: condition(client, "EtcdRunningInCluster")["status"] == "False", operator)
            masters.register()
            until(lambda: all(operator.said(f"Adding member {name}") for name in MASTERS), operator)
            # Killed between adding and promoting; only the Lease it held is taken away, which else runs out by itself.
            operator.kill()
        client.delete(LEASES, "etcd-operator-lock", "openshift-etcd-operator")
        masters.may_start.set()
        with operator_process(cluster_api, PROGRAM, account, log, *WORDS) as operator:
            running_on_masters(client, etcd, operator)
            removed_when_complete(client, etcd, operator)
            assert operator.stop() == 0


def running_on_masters(client: Client, etcd: RealEtcd, operator: OperatorProcess) -> None:
    until(lambda: condition(client, "EtcdRunningInCluster")["status"] == "True", operator)
    assert etcd.voters() == {BOOTSTRAP, *MASTERS}
    assert all(operator.said(f"Member {name} started") for name in MASTERS)
    # Another controller's work, which may come a moment later.
    wanted = {etcd.member(name).hex: etcd.addresses[name] for name in MASTERS}
    until(lambda: client.get(CONFIG_MAPS, "etcd-endpoints", "openshift-etcd")["data"] == wanted, operator)
    found = client.get(CONFIG_MAPS, "etcd-endpoints", "openshift-etcd")
    assert found["metadata"]["annotations"] == {
        "alpha.installer.openshift.io/etcd-bootstrap": etcd.addresses[BOOTSTRAP]
    }
    # Not before the cluster says that it stands alone.
    removed = condition(client, "EtcdBootstrapMemberRemoved")
    assert (removed["status"], removed["reason"]) == ("False", "BootstrapNotComplete")
    until(lambda: [*revisions(client)] == [1, 1, 1], operator)
    until(lambda: condition(client, "EtcdMembersAvailable")["status"] == "True", operator)


def removed_when_complete(client: Client, etcd: RealEtcd, operator: OperatorProcess) -> None:
    client.create(CONFIG_MAPS, config_map("bootstrap", "kube-system", {"status": "complete"}))
    until(lambda: condition(client, "EtcdBootstrapMemberRemoved")["status"] == "True", operator)
    assert etcd.voters() == set(MASTERS)
    assert len(operator.said("Removing bootstrap member")) == len(operator.said("Bootstrap member removed")) == 1
    until(
        lambda: "annotations" not in client.get(CONFIG_MAPS, "etcd-endpoints", "openshift-etcd")["metadata"], operator
    )
    budget = "etcd-guard-pdb"
    until(lambda: client.get(POD_DISRUPTION_BUDGETS, budget, "openshift-etcd")["spec"]["minAvailable"] == 2, operator)
    # It goes without a new revision: nobody is restarted for it.
    assert [*revisions(client)] == [1, 1, 1]
    until(lambda: available(client)["Available"] == "True" and available(client)["Progressing"] == "False", operator)


def revisions(client: Client) -> Iterator[int]:
    for entry in client.get(ETCDS, "cluster")["status"]["nodeStatuses"]:
        yield entry["currentRevision"]


def available(client: Client) -> dict[str, str]:
    conditions = client.get(CLUSTER_OPERATORS, "etcd")["status"]["conditions"]
    return {entry["type"]: entry["status"] for entry in conditions}
