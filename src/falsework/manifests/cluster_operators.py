"""The operators a finished cluster has. Who waits for the cluster waits for these."""

from __future__ import annotations

from falsework.manifests.objects import Object, named

# Operator → file, and the namespaces that belong to it.
_OPERATORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "etcd": ("0000_12_etcd_07_clusteroperator.yaml", ("openshift-etcd-operator", "openshift-etcd")),
    "kube-apiserver": (
        "0000_20_kube-apiserver_07_clusteroperator.yaml",
        ("openshift-kube-apiserver-operator", "openshift-kube-apiserver"),
    ),
    "kube-controller-manager": (
        "0000_25_kube-controller-manager_07_clusteroperator.yaml",
        ("openshift-kube-controller-manager-operator", "openshift-kube-controller-manager"),
    ),
    "kube-scheduler": (
        "0000_25_kube-scheduler_07_clusteroperator.yaml",
        ("openshift-kube-scheduler-operator", "openshift-kube-scheduler"),
    ),
    "ingress": ("0000_50_ingress_07_clusteroperator.yaml", ("openshift-ingress-operator", "openshift-ingress")),
    "image-registry": ("0000_50_image-registry_07_clusteroperator.yaml", ("openshift-image-registry",)),
    "machine-approver": (
        "0000_50_machine-approver_07_clusteroperator.yaml",
        ("openshift-cluster-machine-approver",),
    ),
    "storage": ("0000_50_cluster-storage-operator_07_clusteroperator.yaml", ("openshift-cluster-storage-operator",)),
    "dns": ("0000_70_dns_07_clusteroperator.yaml", ("openshift-dns-operator", "openshift-dns")),
    "network": ("0000_70_network_07_clusteroperator.yaml", ("openshift-network-operator", "kube-flannel")),
    "machine-config": (
        "0000_80_machine-config_07_clusteroperator.yaml",
        ("openshift-machine-config-operator",),
    ),
}

NAMES = tuple(_OPERATORS)


def cluster_operators(version: str) -> dict[str, list[Object]]:
    """File name → the operator as it is to be: a release's word on which version it has to report."""
    return {file: [_cluster_operator(name, namespaces, version)] for name, (file, namespaces) in _OPERATORS.items()}


def _cluster_operator(name: str, namespaces: tuple[str, ...], version: str) -> Object:
    related = [{"group": "", "resource": "namespaces", "name": namespace} for namespace in namespaces]
    status = {"versions": [{"name": "operator", "version": version}], "relatedObjects": related}
    return named("config.openshift.io/v1", "ClusterOperator", name, spec={}, status=status)
