"""The dns operator on a real API with exactly its rights; and a real CoreDNS by what it has made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from operator_process import POD, VERSION, account_of, operator_process, until
from real_api import RealApi
from real_coredns import coredns, upstream

from falsework.assets import objects
from falsework.kube.client import APPLY, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DAEMON_SETS,
    INFRASTRUCTURES,
    NETWORKS,
    OPERATOR_DNSES,
    SERVICES,
)
from falsework.manifests.objects import Manifests, named
from falsework.manifests.operators import dns
from falsework.operators.runtime.conditions import status_of
from falsework.release.inventory import Release

PLACE = ("dns-default", "openshift-dns")
IMAGES = {"falsework": "registry.example/falsework:1", "coredns": "registry.example/coredns:1"}
MANIFESTS = dns.manifests(VERSION, IMAGES)
CORP = {"name": "corp", "zones": ["corp.example"], "forwardPlugin": {"upstreams": ["127.0.0.77:53"]}}


@pytest.fixture(scope="module")
def client(cluster_api: RealApi) -> Iterator[Client]:
    client, site = cluster_api.client(), cluster_api.site
    networking = site.networking
    infrastructure = objects.infrastructure("id", site.api_host, site.api_int_host, 3, 2)
    bodies = [
        objects.network(networking.cluster_networks, networking.service_networks, networking.network_type),
        infrastructure,
        named("config.openshift.io/v1", "ClusterOperator", "dns", spec={}),
    ]
    for body in bodies:
        put(client, body)
    live = client.get(INFRASTRUCTURES, "cluster")
    client.replace(INFRASTRUCTURES, {**live, "status": infrastructure["status"]}, "status")
    first = client.get(OPERATOR_DNSES, "default")
    yield client
    left = client.get(OPERATOR_DNSES, "default")
    version = left["metadata"]["resourceVersion"]
    client.replace(OPERATOR_DNSES, {**first, "metadata": {**first["metadata"], "resourceVersion": version}})
    left = client.get(OPERATOR_DNSES, "default")
    client.replace(OPERATOR_DNSES, {**left, "status": {}}, "status")
    for resource in (DAEMON_SETS, CONFIG_MAPS, SERVICES):
        client.delete(resource, *PLACE)
    client.delete(CLUSTER_OPERATORS, "dns")
    client.delete(NETWORKS, "cluster")
    client.delete(INFRASTRUCTURES, "cluster")


def put(client: Client, body: Object) -> None:
    metadata = body["metadata"]
    client.patch(client.resource_of(body), metadata["name"], body, metadata.get("namespace", ""), kind=APPLY)


def said(client: Client, kind: str) -> bool | None:
    return status_of(client.get(CLUSTER_OPERATORS, "dns")["status"]["conditions"], kind)


def corefile(client: Client) -> str:
    return str(client.get(CONFIG_MAPS, *PLACE)["data"]["Corefile"])


def roll_out(client: Client, nodes: int) -> None:
    """What the DaemonSet controller says when all its pods are ready."""
    live = client.get(DAEMON_SETS, *PLACE)
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady")
    status = dict.fromkeys((*counts, "numberAvailable"), nodes)
    status |= {"numberMisscheduled": 0, "observedGeneration": live["metadata"]["generation"]}
    client.replace(DAEMON_SETS, {**live, "status": status}, "status")


def test_dns_comes_up_is_kept_and_told(client: Client, cluster_api: RealApi, tmp_path: Path) -> None:
    kubeconfig = account_of(cluster_api, MANIFESTS)
    words = [f"--image=coredns={IMAGES['coredns']}"]
    with operator_process(cluster_api, [*POD, dns.NAME], kubeconfig, tmp_path / "log", *words) as operator:
        until(lambda: client.get(DAEMON_SETS, *PLACE), operator)
        assert client.get(SERVICES, *PLACE)["spec"]["clusterIP"] == "172.30.0.10"
        assert client.get(SERVICES, *PLACE)["spec"]["trafficDistribution"] == "PreferSameNode"
        until(lambda: said(client, "Available") is False, operator)
        roll_out(client, 3)
        until(lambda: said(client, "Available") and said(client, "Progressing") is False, operator)
        status = client.get(OPERATOR_DNSES, "default")["status"]
        assert (status["clusterIP"], status["clusterDomain"]) == ("172.30.0.10", "cluster.local")

        client.patch(OPERATOR_DNSES, "default", {"spec": {"servers": [CORP]}})
        until(lambda: corefile(client).startswith("# corp\n"), operator)
        # A mistake changes nothing but what is said; somebody's own changes are put right all the same.
        mistaken = {**CORP, "zones": ["cluster.local"]}
        client.patch(OPERATOR_DNSES, "default", {"spec": {"servers": [mistaken]}})
        until(lambda: operator.said("is the cluster's own"), operator)
        assert corefile(client).startswith("# corp\n")
        client.patch(OPERATOR_DNSES, "default", {"spec": {"servers": [CORP]}})
        client.delete(SERVICES, *PLACE)
        until(lambda: client.get(SERVICES, *PLACE)["spec"]["clusterIP"] == "172.30.0.10", operator)
        client.patch(CONFIG_MAPS, PLACE[0], {"data": {"Corefile": "nonsense"}}, PLACE[1])
        until(lambda: corefile(client).startswith("# corp\n"), operator)
        assert operator.stop() == 0
    assert "forbidden" not in (tmp_path / "log").read_text().lower()


def test_names_resolve(client: Client, cluster_api: RealApi, release: Release, programs: Path, tmp_path: Path) -> None:
    """By the Corefile the operator has just left there, and as CoreDNS' own service account."""
    release.install("coredns", programs)
    rights: Manifests = {file: bodies[-3:] for file, bodies in MANIFESTS.items() if file.endswith("_rbac.yaml")}
    account = account_of(cluster_api, rights)
    with contextlib.ExitStack() as undo:
        for body in headless("web", "10.128.0.7"):
            put(client, body)
            undo.callback(client.delete, client.resource_of(body), body["metadata"]["name"], "default")
        undo.enter_context(
            upstream(programs / "coredns", tmp_path, www_corp_example="192.0.2.7", outside_example="192.0.2.8")
        )
        asked = undo.enter_context(coredns(cluster_api, programs / "coredns", corefile(client), account, tmp_path))
        assert asked.answers("kubernetes.default.svc.cluster.local") == ["172.30.0.1"]
        assert asked.answers("dns-default.openshift-dns.svc.cluster.local") == ["172.30.0.10"]
        assert asked.answers("web.default.svc.cluster.local") == ["10.128.0.7"]
        assert asked.answers("_https._tcp.kubernetes.default.svc.cluster.local", "SRV") == [
            "0 100 443 kubernetes.default.svc.cluster.local."
        ]
        assert asked.answers("10.0.30.172.in-addr.arpa", "PTR") == ["dns-default.openshift-dns.svc.cluster.local."]
        assert asked.answers("10-128-0-9.default.pod.cluster.local") == ["10.128.0.9"]
        assert asked.answers("nobody.default.svc.cluster.local") == ["NXDOMAIN"]
        # Those of others: by a server of their own, and by the node's.
        assert asked.answers("www.corp.example") == ["192.0.2.7"]
        assert asked.answers("outside.example") == ["192.0.2.8"]


def headless(name: str, address: str) -> list[Object]:
    slice_ = named("discovery.k8s.io/v1", "EndpointSlice", name, "default", addressType="IPv4")
    slice_["metadata"]["labels"] = {"kubernetes.io/service-name": name}
    slice_ |= {"endpoints": [{"addresses": [address]}], "ports": [{"name": "http", "port": 80}]}
    spec = {"clusterIP": "None", "ports": [{"name": "http", "port": 80}]}
    return [named("v1", "Service", name, "default", spec=spec), slice_]
