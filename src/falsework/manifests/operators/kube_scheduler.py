"""The kube-scheduler operator."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.static_pod_rights import MASTERS, in_operand_namespace
from falsework.manifests.workload import Workload, operator_manifests, read_config


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix="0000_25_kube-scheduler",
        name="kube-scheduler-operator",
        namespace="openshift-kube-scheduler-operator",
        port=9104,
        version=version,
        image=images["falsework"],
        images={"kube-scheduler": images["kube-scheduler"]},
        cluster_rules=[MASTERS, read_config("infrastructures", "networks")],
        roles={"openshift-kube-scheduler": in_operand_namespace()},
    )
    return operator_manifests(workload, "kubeschedulers")
