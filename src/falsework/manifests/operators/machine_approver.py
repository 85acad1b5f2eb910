"""The machine-approver: it approves what kubelets of the site ask for, and may approve nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.workload import READ, Workload, core, operator_manifests, rule

_CERTIFICATES = "certificates.k8s.io"
_SIGNERS = ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving")


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix="0000_50_machine-approver",
        name="machine-approver",
        namespace="openshift-cluster-machine-approver",
        port=9106,
        version=version,
        image=images["falsework"],
        cluster_rules=[
            rule(_CERTIFICATES, "certificatesigningrequests", READ),
            rule(_CERTIFICATES, "certificatesigningrequests/approval", ("update",)),
            rule(_CERTIFICATES, "signers", ("approve",), _SIGNERS),
            core("nodes", READ),
        ],
        roles={
            "kube-system": [core("configmaps", READ, ("bootstrap",))],
            "openshift-config": [core("configmaps", READ, ("machine-inventory",))],
            "openshift-machine-config-operator": [core("configmaps", READ, ("machine-config-served",))],
            # Where events about what is in no namespace are.
            "default": [core("events", ("create",))],
        },
    )
    return operator_manifests(workload, "machineapprovers")
