"""How far the masters' own control plane is, by what the cluster's API says of it."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.kube.client import Object
from falsework.kube.cluster import Cluster, condition_of, is_true, told
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    ETCDS,
    KUBE_API_SERVERS,
    KUBE_CONTROLLER_MANAGERS,
    KUBE_SCHEDULERS,
    NODES,
    Resource,
)
from falsework.site.model import Machine, Site

COMPONENTS = {
    "etcd": ETCDS,
    "kube-apiserver": KUBE_API_SERVERS,
    "kube-controller-manager": KUBE_CONTROLLER_MANAGERS,
    "kube-scheduler": KUBE_SCHEDULERS,
}
"""What runs on every master as a static pod, and who says in which revision."""
REQUIRED_OPERATORS = (*COMPONENTS, "machine-approver", "machine-config", "network")
MEMBER_REMOVED = "EtcdBootstrapMemberRemoved"
_ENDPOINTS = ("etcd-endpoints", "openshift-etcd")
_COMPLETE = ("bootstrap", "kube-system")


@dataclass(frozen=True)
class Stand:
    """How something stands: `state` in a few words, `detail` with what somebody says of it."""

    good: bool
    state: str
    detail: str = ""


def node(cluster: Cluster, name: str) -> Object | None:
    return next((body for body in cluster.all(NODES) if body["metadata"]["name"] == name), None)


def readiness(cluster: Cluster, name: str) -> Stand:
    found = node(cluster, name)
    if found is None:
        return Stand(False, "not a node")
    if is_true(found, "Ready"):
        return Stand(True, "Ready")
    return Stand(False, "NotReady", told(found, "Ready"))


def voters(cluster: Cluster) -> set[str]:
    """The addresses of etcd's voters on masters, as the etcd operator has them written down."""
    endpoints = cluster.one(CONFIG_MAPS, *_ENDPOINTS)
    return set(((endpoints or {}).get("data") or {}).values())


def voter(cluster: Cluster, site: Site, machine: Machine) -> Stand:
    if str(machine.address) in voters(cluster):
        return Stand(True, "a voter")
    installed = revision(cluster, ETCDS, site.fqdn(machine))
    degraded = condition_of(cluster.one(ETCDS, "cluster"), "ClusterMemberControllerDegraded") or {}
    return Stand(False, f"not a voter, etcd {installed.state}", str(degraded.get("message") or installed.detail))


def members(cluster: Cluster) -> Stand:
    etcd = cluster.one(ETCDS, "cluster")
    if condition_of(etcd, "EtcdMembersAvailable") is None:
        return Stand(False, "not told of", "the etcd operator has not looked yet: does its pod run?")
    if not is_true(etcd, "EtcdMembersAvailable"):
        return Stand(False, "no quorum", told(etcd, "EtcdMembersAvailable"))
    if is_true(etcd, "EtcdMembersDegraded"):
        return Stand(False, "not all healthy", told(etcd, "EtcdMembersDegraded"))
    return Stand(True, "healthy")


def revision(cluster: Cluster, resource: Resource, name: str) -> Stand:
    """Of a static pod on a node."""
    status = (cluster.one(resource, "cluster") or {}).get("status") or {}
    mine: Object = next((entry for entry in status.get("nodeStatuses") or () if entry.get("nodeName") == name), {})
    current, target = int(mine.get("currentRevision") or 0), int(mine.get("targetRevision") or 0)
    failures = "; ".join(mine.get("lastFailedRevisionErrors") or ())
    if current:
        return Stand(True, f"in revision {current}", failures)
    if target:
        return Stand(False, f"on its way to revision {target}", failures)
    latest = int(status.get("latestAvailableRevision") or 0)
    return Stand(False, f"not begun, revision {latest} is ready" if latest else "without a revision", failures)


def rolled_out(cluster: Cluster, site: Site, resource: Resource) -> Stand:
    """Whether a component runs in a revision of its own on every master."""
    stands = {machine.name: revision(cluster, resource, site.fqdn(machine)) for machine in site.masters}
    state = ", ".join(f"{name} {stand.state}" for name, stand in stands.items())
    degraded = [
        told(cluster.one(resource, "cluster"), kind)
        for kind in ("NodeInstallerDegraded", "RevisionControllerDegraded", "StaticPodsDegraded")
        if is_true(cluster.one(resource, "cluster"), kind)
    ]
    good = all(stand.good for stand in stands.values())
    return Stand(good, state, "; ".join([*degraded, *(stand.detail for stand in stands.values() if stand.detail)]))


def operator(cluster: Cluster, name: str) -> Stand:
    found = next((body for body in cluster.all(CLUSTER_OPERATORS) if body["metadata"]["name"] == name), None)
    if found is None:
        return Stand(False, "not there")
    if is_true(found, "Available"):
        return Stand(True, "available")
    reason = (condition_of(found, "Available") or {}).get("reason")
    return Stand(False, f"not available ({reason})" if reason else "not available", told(found, "Available"))


def is_complete(cluster: Cluster) -> bool:
    """Whether the bootstrap has said that its work is done."""
    said = cluster.one(CONFIG_MAPS, *_COMPLETE)
    return ((said or {}).get("data") or {}).get("status") == "complete"


def member_removed(cluster: Cluster) -> Stand:
    etcd = cluster.one(ETCDS, "cluster")
    if is_true(etcd, MEMBER_REMOVED):
        return Stand(True, "removed")
    return Stand(False, "still a member", told(etcd, MEMBER_REMOVED))
