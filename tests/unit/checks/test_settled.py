"""When operators and the cluster's version count as finished, and what is said until then."""

from __future__ import annotations

import pytest
from told_cluster import ToldCluster

from falsework.checks import settled
from falsework.kube.resources import CLUSTER_VERSIONS, DAEMON_SETS, NODES


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ({}, "says nothing yet"),
        ({"Available": "False", "Degraded": "True"}, "not available (R), degraded (R)"),
        ({"Available": "True", "Progressing": "True"}, "progressing (R)"),
        ({"Available": "Unknown"}, "not available (R)"),
        ({"Available": "True"}, "available and at rest"),
        ({"Available": "True", "Progressing": "False", "Degraded": "False"}, "available and at rest"),
    ],
)
def test_an_operator(conditions: dict[str, str], state: str) -> None:
    cluster = ToldCluster()
    assert settled.operator(cluster, "dns").state == "not there"
    cluster.has_operator("dns", **conditions)
    found = settled.operator(cluster, "dns")
    assert (found.state, found.good) == (state, state == "available and at rest")


def test_what_an_operator_says_is_told() -> None:
    cluster = ToldCluster()
    cluster.has_operator("dns", Available="True", Progressing="True")
    assert settled.operator(cluster, "dns").detail == "Progressing=True (R): m"


@pytest.mark.parametrize(("kind", "value"), [("Available", "False"), ("Failing", "True"), ("Progressing", "True")])
def test_the_version(kind: str, value: str) -> None:
    cluster = ToldCluster()
    assert not settled.version(cluster).good
    good = {"Available": "True", "Failing": "False", "Progressing": "False"}
    cluster.has(CLUSTER_VERSIONS, "version", good)
    assert settled.version(cluster).good
    cluster.has(CLUSTER_VERSIONS, "version", {**good, kind: value})
    assert not settled.version(cluster).good


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"desiredNumberScheduled": 2, "numberAvailable": 2}, "all there"),
        ({"desiredNumberScheduled": 1, "numberAvailable": 1}, "dns-default 1 of 2"),
        ({"desiredNumberScheduled": 3, "numberAvailable": 2}, "dns-default 2 of 3"),
        ({}, "dns-default 0 of 2"),
    ],
)
def test_pods_of_every_node(status: dict[str, int], state: str) -> None:
    """A node that has just joined counts before the DaemonSet's controller has heard of it."""
    cluster = ToldCluster()
    linux = {"kubernetes.io/os": "linux"}
    for name, labels, taint in (
        ("master", linux, "node-role.kubernetes.io/master"),
        ("worker", linux, "node.kubernetes.io/not-ready"),
        ("other", {}, ""),
        ("set-apart", linux, "example.com/mine"),
    ):
        taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
        cluster.has(NODES, name, metadata={"name": name, "labels": labels}, spec={"taints": taints})
    tolerations = [
        {"key": "node-role.kubernetes.io/master", "operator": "Exists"},
        {"key": "example.com/mine", "operator": "Equal", "value": "another"},
        {"key": "example.com/mine", "operator": "Exists", "effect": "NoExecute"},
    ]
    for name, space, counts in (("dns-default", "openshift-dns", status), ("theirs", "shop", {})):
        cluster.has(
            DAEMON_SETS,
            name,
            metadata={"name": name, "namespace": space, "generation": 1},
            spec={"template": {"spec": {"nodeSelector": linux, "tolerations": tolerations}}},
            status=counts,
        )
    stand = settled.daemons(cluster)
    assert (stand.state, stand.good) == (state, state == "all there")
