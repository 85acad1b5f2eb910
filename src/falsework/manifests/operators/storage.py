"""The storage operator."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.workload import READ, Workload, core, operator_manifests, rule

NAMESPACE = "openshift-cluster-storage-operator"
NAME = "cluster-storage-operator"
CLUSTER_OPERATOR = "storage"
PORT = 9112
FOLDER_ENTRY_POINT = "volume-folder"
"""What its short-lived pods on the nodes run."""


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    """The folders' pods run as the namespace's default account, without its token."""
    workload = Workload(
        prefix="0000_50_cluster-storage-operator",
        name=NAME,
        namespace=NAMESPACE,
        entry_point=NAME,
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
    return operator_manifests(workload, "storages", CLUSTER_OPERATOR)
