"""The daemon that writes static pods on the masters.

It can read the control plane's keys, so it runs where these are anyway and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.workload import MASTER, READ, Workload, core, daemon_set_manifests, host_folder, rule

_OPERANDS = {
    "etcds": "openshift-etcd",
    "kubeapiservers": "openshift-kube-apiserver",
    "kubecontrollermanagers": "openshift-kube-controller-manager",
    "kubeschedulers": "openshift-kube-scheduler",
}


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    rules = [core("configmaps", ("get", "create", "patch")), core("secrets", ("get",))]
    workload = Workload(
        prefix="0000_80_machine-config-daemon",
        name="machine-config-daemon",
        namespace="openshift-machine-config-operator",
        port=9108,
        version=version,
        image=images["falsework"],
        cluster_rules=[rule("operator.openshift.io", list(_OPERANDS), READ)],
        roles=dict.fromkeys(_OPERANDS.values(), rules),
        root=True,
        node_name=True,
        mounts=[{"name": "kubernetes", "mountPath": "/etc/kubernetes"}],
        volumes=[host_folder("kubernetes", "/etc/kubernetes")],
    )
    return daemon_set_manifests(workload, node_selector={MASTER: ""})
