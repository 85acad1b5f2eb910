"""The kube-controller-manager operator."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.static_pod_rights import MASTERS, in_operand_namespace
from falsework.manifests.workload import Workload, operator_manifests, read_config


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix="0000_25_kube-controller-manager",
        name="kube-controller-manager-operator",
        namespace="openshift-kube-controller-manager-operator",
        entry_point="kube-controller-manager-operator",
        port=9103,
        version=version,
        image=images["falsework"],
        images={"kube-controller-manager": images["kube-controller-manager"]},
        cluster_rules=[MASTERS, read_config("infrastructures", "networks")],
        roles={"openshift-kube-controller-manager": in_operand_namespace()},
    )
    return operator_manifests(workload, "kubecontrollermanagers")
