"""The network operator against a real API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from network_operator import IMAGES, described, network_operator
from operator_process import VERSION, until
from real_api import RealApi

from falsework.kube.client import Client, Object
from falsework.kube.resources import CLUSTER_OPERATORS, CONFIG_MAPS, DAEMON_SETS, NETWORKS, OPERATOR_NETWORKS
from falsework.manifests.objects import named
from falsework.operators.runtime.conditions import status_of

PLACE = ("kube-flannel-ds", "kube-flannel")
SPEC = {"clusterNetwork": [{"cidr": "10.244.0.0/16", "hostPrefix": 24}], "serviceNetwork": ["172.30.0.0/16"]}


def said(client: Client, kind: str) -> bool | None:
    return status_of(client.get(CLUSTER_OPERATORS, "network")["status"]["conditions"], kind)


def daemon_set(client: Client) -> Object:
    return client.get(DAEMON_SETS, *PLACE)


def net_conf(client: Client) -> str:
    return str(client.get(CONFIG_MAPS, "kube-flannel-cfg", PLACE[1])["data"]["net-conf.json"])


def roll_out(client: Client, nodes: int) -> None:
    """What the DaemonSet controller says when all its pods are ready."""
    live = daemon_set(client)
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady")
    status = dict.fromkeys((*counts, "numberAvailable"), nodes)
    status |= {"numberMisscheduled": 0, "observedGeneration": live["metadata"]["generation"]}
    client.replace(DAEMON_SETS, {**live, "status": status}, "status")


@pytest.fixture
def client(cluster_api: RealApi) -> Iterator[Client]:
    """Of the administrator of a site that is described and has no network yet."""
    client = cluster_api.client()
    with described(
        client,
        named("config.openshift.io/v1", "Network", "cluster", spec={**SPEC, "networkType": "OVNKubernetes"}),
        named(
            "config.openshift.io/v1",
            "Infrastructure",
            "cluster",
            spec={},
            status={"apiServerInternalURI": cluster_api.url, "controlPlaneTopology": "HighlyAvailable"},
        ),
        named("operator.openshift.io/v1", "Network", "cluster", spec={"managementState": "Managed"}),
    ):
        yield client
    client.raw("DELETE", DAEMON_SETS.path(PLACE[1], PLACE[0]))
    client.raw("DELETE", CONFIG_MAPS.path(PLACE[1], "kube-flannel-cfg"))


def test_a_network_comes_up_is_kept_and_told(client: Client, cluster_api: RealApi, tmp_path: Path) -> None:
    with network_operator(cluster_api, tmp_path / "log") as operator:
        until(lambda: daemon_set(client), operator)
        pod = daemon_set(client)["spec"]["template"]["spec"]
        assert [one["image"] for one in (*pod["initContainers"], *pod["containers"])] == list(IMAGES.values())
        until(lambda: said(client, "Available") is False, operator)
        # Said last of all.
        until(lambda: client.get(NETWORKS, "cluster")["status"], operator)
        status = client.get(NETWORKS, "cluster")["status"]
        # Of the loopback link, which is the way to this API.
        assert status["clusterNetworkMTU"] == 65536 - 50
        assert (status["networkType"], status["clusterNetwork"]) == ("Flannel", SPEC["clusterNetwork"])

        roll_out(client, 3)
        until(lambda: said(client, "Available"), operator)
        until(lambda: said(client, "Progressing") is False, operator)
        assert client.get(CLUSTER_OPERATORS, "network")["status"]["versions"][0]["version"] == VERSION

        # Somebody's change, and somebody's mistake.
        client.patch(DAEMON_SETS, PLACE[0], {"spec": {"template": {"spec": {"dnsPolicy": "ClusterFirst"}}}}, PLACE[1])
        until(lambda: daemon_set(client)["spec"]["template"]["spec"]["dnsPolicy"] == "Default", operator)
        client.patch(CONFIG_MAPS, "kube-flannel-cfg", {"data": {"net-conf.json": "{}"}}, PLACE[1])
        until(
            lambda: "10.244" in client.get(CONFIG_MAPS, "kube-flannel-cfg", PLACE[1])["data"]["net-conf.json"], operator
        )
        client.delete(DAEMON_SETS, *PLACE)
        until(lambda: daemon_set(client), operator)

        # Another backend: other pods. Another network: never.
        annotations = daemon_set(client)["spec"]["template"]["metadata"]["annotations"]
        wanted = {"spec": {"defaultNetwork": {"type": "Flannel", "flannelConfig": {"backend": "host-gw"}}}}
        client.patch(OPERATOR_NETWORKS, "cluster", wanted)
        until(lambda: daemon_set(client)["spec"]["template"]["metadata"]["annotations"] != annotations, operator)
        client.patch(NETWORKS, "cluster", {"spec": {"clusterNetwork": [{"cidr": "10.9.0.0/16", "hostPrefix": 24}]}})
        until(lambda: operator.said("Not applying unsafe configuration change"), operator)
        conf = json.loads(net_conf(client))
        assert (conf["Network"], conf["Backend"]) == ("10.244.0.0/16", {"Type": "host-gw"})
        assert operator.stop() == 0
    assert "Forbidden" not in operator.log.read_text()
