"""The kube-apiserver operator."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.static_pod_rights import MASTERS, for_guards, in_operand_namespace
from falsework.manifests.workload import READ, Workload, core, operator_manifests, read_config


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix="0000_20_kube-apiserver",
        name="kube-apiserver-operator",
        namespace="openshift-kube-apiserver-operator",
        port=9102,
        version=version,
        image=images["falsework"],
        images={name: images[name] for name in ("kube-apiserver", "pause")},
        cluster_rules=[MASTERS, read_config("infrastructures", "networks")],
        roles={
            "openshift-kube-apiserver": [*in_operand_namespace(), *for_guards()],
            # Which etcd members there are, and how many there will be.
            "openshift-etcd": [core("configmaps", READ, ("etcd-endpoints",))],
            "kube-system": [core("configmaps", READ, ("cluster-config-v1",))],
            # Certificates it renews, and their signers.
            "openshift-kube-apiserver-operator": [core("secrets", ("get", "create", "patch", "delete"))],
            "openshift-config-managed": [core("configmaps", READ, ("csr-controller-ca",))],
            "openshift-kube-controller-manager": [
                core("secrets", ("get", "patch"), ("kube-controller-manager-client-cert-key",))
            ],
            "openshift-kube-scheduler": [core("secrets", ("get", "patch"), ("kube-scheduler-client-cert-key",))],
        },
    )
    return operator_manifests(workload, "kubeapiservers")
