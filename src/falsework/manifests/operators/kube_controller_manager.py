"""The kube-controller-manager operator."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.static_pod_rights import MASTERS, in_operand_namespace
from falsework.manifests.workload import Workload, core, operator_manifests, read_config, rule


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix="0000_25_kube-controller-manager",
        name="kube-controller-manager-operator",
        namespace="openshift-kube-controller-manager-operator",
        port=9103,
        version=version,
        image=images["falsework"],
        images={"kube-controller-manager": images["kube-controller-manager"]},
        cluster_rules=[
            MASTERS,
            read_config("infrastructures", "networks"),
            rule("operator.openshift.io", "kubeapiservers", ("get",), ("cluster",)),
        ],
        roles={
            "openshift-kube-controller-manager": in_operand_namespace(),
            # The next signer of the kubelets' certificates, and whether the API servers trust it already.
            "openshift-kube-controller-manager-operator": [core("secrets", ("get", "create", "patch", "delete"))],
            "openshift-config-managed": [
                core("configmaps", ("create",)),
                core("configmaps", ("get", "patch"), ("csr-controller-ca",)),
            ],
            "openshift-kube-apiserver": [core("configmaps", ("get",))],
        },
    )
    return operator_manifests(workload, "kubecontrollermanagers")
