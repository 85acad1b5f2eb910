"""The etcd operator."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.static_pod_rights import MASTERS, for_guards, in_operand_namespace
from falsework.manifests.workload import READ, Workload, core, operator_manifests, read_config


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix="0000_12_etcd",
        name="etcd-operator",
        namespace="openshift-etcd-operator",
        port=9101,
        version=version,
        image=images["falsework"],
        images={name: images[name] for name in ("etcd", "falsework", "pause")},
        cluster_rules=[MASTERS, read_config("infrastructures")],
        roles={
            "openshift-etcd": [*in_operand_namespace(), *for_guards()],
            # What it shows to etcd, and whom it trusts.
            "openshift-etcd-operator": [
                core("secrets", READ, ("etcd-client",)),
                core("configmaps", READ, ("etcd-ca-bundle",)),
            ],
            # Where members may be.
            "openshift-config": [core("configmaps", READ, ("machine-inventory",))],
            # Whether the cluster stands alone.
            "kube-system": [core("configmaps", READ, ("bootstrap",))],
        },
    )
    return operator_manifests(workload, "etcds")
