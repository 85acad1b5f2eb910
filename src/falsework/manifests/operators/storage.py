"""The storage operator."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests, named
from falsework.manifests.workload import READ, Workload, core, operator_manifests, rule

NAMESPACE = "openshift-cluster-storage-operator"
NAME = "cluster-storage-operator"
CLUSTER_OPERATOR = "storage"
PORT = 9112
FOLDER_ENTRY_POINT = FOLDER_ACCOUNT = "volume-folder"
"""What its short-lived pods on the nodes run, and who they are: somebody without any rights."""

_PREFIX = "0000_50_cluster-storage-operator"


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix=_PREFIX,
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image=images["falsework"],
        images={"falsework": images["falsework"]},
        cluster_rules=[
            rule("storage.k8s.io", "storageclasses", (*READ, "create")),
            core("persistentvolumes", (*READ, "create", "patch", "delete")),
            # Patched where the scheduler has chosen a node that is gone.
            core("persistentvolumeclaims", (*READ, "patch")),
            core("nodes", ("get",)),
            # About claims, in their namespaces.
            core("events", ("create",)),
        ],
        roles={NAMESPACE: [core("pods", (*READ, "create", "delete"))]},
    )
    result = operator_manifests(workload, "storages", CLUSTER_OPERATOR)
    result[f"{_PREFIX}_03_rbac.yaml"].append(named("v1", "ServiceAccount", FOLDER_ACCOUNT, NAMESPACE))
    return result
