"""What the cluster's own words mean for those who wait."""

from __future__ import annotations

import pytest
from told_cluster import SITE, ToldCluster

from falsework.checks import control_plane, removal
from falsework.errors import FalseworkError
from falsework.kube.client import Unreachable
from falsework.kube.resources import KUBE_API_SERVERS

FIRST = SITE.masters[0]
NODE = SITE.fqdn(FIRST)


@pytest.fixture
def cluster() -> ToldCluster:
    return ToldCluster()


def test_a_node_is_not_there_then_not_ready_then_ready(cluster: ToldCluster) -> None:
    assert control_plane.readiness(cluster, NODE).state == "not a node"
    cluster.has_node(NODE, "False")
    assert control_plane.readiness(cluster, NODE).state == "NotReady"
    assert "(R): m" in control_plane.readiness(cluster, NODE).detail
    cluster.has_node(NODE, "True")
    assert control_plane.readiness(cluster, NODE).good


def test_a_voter_is_one_the_operator_has_written_down(cluster: ToldCluster) -> None:
    cluster.has_etcd({"nodeName": NODE, "targetRevision": 1})
    found = control_plane.voter(cluster, SITE, FIRST)
    assert (found.good, found.state) == (False, "not a voter, etcd on its way to revision 1")
    cluster.has_voters(1)
    assert control_plane.voter(cluster, SITE, FIRST).good
    assert not control_plane.voter(cluster, SITE, SITE.masters[1]).good


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ({}, "not told of"),
        ({"EtcdMembersAvailable": "False"}, "no quorum"),
        ({"EtcdMembersAvailable": "True", "EtcdMembersDegraded": "True"}, "not all healthy"),
        ({"EtcdMembersAvailable": "True", "EtcdMembersDegraded": "False"}, "healthy"),
    ],
)
def test_members(cluster: ToldCluster, conditions: dict[str, str], state: str) -> None:
    cluster.has_etcd(**conditions)
    assert control_plane.members(cluster).state == state


def test_a_component_is_rolled_out_when_every_master_has_a_revision(cluster: ToldCluster) -> None:
    assert not control_plane.rolled_out(cluster, SITE, KUBE_API_SERVERS).good
    nodes = [{"nodeName": SITE.fqdn(machine), "currentRevision": 2} for machine in SITE.masters]
    nodes[2] |= {"currentRevision": 0, "targetRevision": 2, "lastFailedRevisionErrors": ["no such image"]}
    status = {"nodeStatuses": nodes, "latestAvailableRevision": 2}
    cluster.has(KUBE_API_SERVERS, "cluster", {"NodeInstallerDegraded": "True"}, status=status)
    found = control_plane.rolled_out(cluster, SITE, KUBE_API_SERVERS)
    assert not found.good
    assert found.state.endswith("master-2 on its way to revision 2")
    assert "no such image" in found.detail
    assert "NodeInstallerDegraded" in found.detail
    nodes[2] |= {"currentRevision": 2, "targetRevision": 0}
    assert control_plane.rolled_out(cluster, SITE, KUBE_API_SERVERS).good


def test_an_operator_is_good_when_it_says_so(cluster: ToldCluster) -> None:
    assert control_plane.operator(cluster, "etcd").state == "not there"
    cluster.has_operator("etcd", Available="False")
    assert control_plane.operator(cluster, "etcd").state == "not available (R)"
    cluster.has_operator("etcd", Available="True", Degraded="True")
    assert control_plane.operator(cluster, "etcd").good


# Whether the bootstrap may go


def three_healthy(cluster: ToldCluster) -> None:
    cluster.has_voters(3)
    cluster.has_etcd(EtcdMembersAvailable="True", EtcdMembersDegraded="False")


def test_each_of_the_three_inputs_is_told(cluster: ToldCluster) -> None:
    cluster.has_voters(1)
    with pytest.raises(FalseworkError) as refused:
        removal.need(cluster, SITE).refuse("it", "command --force")
    assert refused.value.cause
    assert "NO (it has 1)" in refused.value.cause
    assert refused.value.cause.count("NO") == 3
    three_healthy(cluster)
    with pytest.raises(FalseworkError) as refused:
        removal.need(cluster, SITE).refuse("it", "command --force")
    assert refused.value.cause
    assert refused.value.cause.count("NO") == 1
    assert "complete: NO" in refused.value.cause
    assert refused.value.fix
    assert "command --force" in refused.value.fix


def test_all_three_are_not_enough_until_the_member_is_gone(cluster: ToldCluster) -> None:
    three_healthy(cluster)
    cluster.has_complete()
    with pytest.raises(FalseworkError):
        removal.need(cluster, SITE).refuse("it", "")
    cluster.has_etcd(EtcdBootstrapMemberRemoved="True")
    needed = removal.need(cluster, SITE)
    needed.refuse("it", "")
    assert "nothing is lost" in needed.loss()


@pytest.mark.parametrize(
    ("voters", "loss"),
    [
        (0, "everything in the cluster is lost"),
        (1, "quorum is lost"),
        (2, "one of 3 etcd members is lost"),
        (3, "one of 4 etcd members is lost"),
    ],
)
def test_force_says_what_is_lost(cluster: ToldCluster, voters: int, loss: str) -> None:
    cluster.has_voters(voters)
    assert loss in removal.need(cluster, SITE).loss()


def test_an_api_that_cannot_be_asked_is_a_reason_against(cluster: ToldCluster) -> None:
    cluster.trouble = Unreachable("refused", cause="nobody listens")
    with pytest.raises(FalseworkError) as refused:
        removal.need(cluster, SITE).refuse("it", "")
    assert refused.value.cause == "the API cannot be asked who needs the bootstrap: refused (nobody listens)"
    assert "cannot be known" in removal.need(cluster, SITE).loss()
