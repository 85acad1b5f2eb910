"""The network operator, and what flannel may do, which it only runs."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import RBAC, Manifests, cluster_role_binding, named, service_account
from falsework.manifests.workload import READ, Workload, core, operator_manifests, read_config, rule

NAMESPACE = "openshift-network-operator"
NAME = "network-operator"
PORT = 9107
FLANNEL_NAMESPACE = "kube-flannel"
FLANNEL = "flannel"
"""The service account of its pods."""

_PREFIX = "0000_70_network"


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    operator = Workload(
        prefix=_PREFIX,
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image=images["falsework"],
        images={name: images[name] for name in ("falsework", "flannel")},
        cluster_rules=[
            read_config("networks", "infrastructures"),
            rule("config.openshift.io", "networks/status", ("patch",), ("cluster",)),
        ],
        roles={
            FLANNEL_NAMESPACE: [
                rule("apps", "daemonsets", (*READ, "create", "patch")),
                core("configmaps", (*READ, "create", "patch")),
            ]
        },
    )
    result = operator_manifests(operator, "networks")
    result[f"{_PREFIX}_03_rbac.yaml"] += _flannel()
    return result


def _flannel() -> list[dict[str, object]]:
    """It says of its own node how to reach it, and reads that of the others."""
    rules = [core("nodes", READ), core("nodes/status", ("patch",))]
    return [
        named("v1", "ServiceAccount", FLANNEL, FLANNEL_NAMESPACE),
        named(f"{RBAC}/v1", "ClusterRole", FLANNEL, rules=rules),
        cluster_role_binding(FLANNEL, FLANNEL, service_account(FLANNEL, FLANNEL_NAMESPACE)),
    ]
