"""The operator of the cluster's own image registry."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.operator_api import IMAGE_REGISTRY_GROUP
from falsework.manifests.workload import READ, Workload, core, operator_manifests, read_config, rule

NAMESPACE = "openshift-image-registry"
NAME = "cluster-image-registry-operator"
CLUSTER_OPERATOR = "image-registry"
PORT = 9111
INGRESS_CERTIFICATE = "default-ingress-cert"
"""The ConfigMap of openshift-config-managed with whom to trust for routes."""


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    operator = Workload(
        prefix="0000_50_image-registry",
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image=images["falsework"],
        images={name: images[name] for name in ("falsework", "pause", "registry")},
        cluster_rules=[
            read_config("images", "ingresses"),
            rule("config.openshift.io", "images/status", ("patch",), ("cluster",)),
        ],
        roles={
            NAMESPACE: [
                core("secrets", (*READ, "create", "update", "delete")),
                core(("configmaps", "services"), (*READ, "create", "patch", "delete")),
                rule("apps", ("daemonsets", "deployments"), (*READ, "create", "patch", "delete")),
                # What is stored is not for it to remove.
                core("persistentvolumeclaims", (*READ, "create")),
                rule("route.openshift.io", "routes", (*READ, "create", "patch", "delete")),
            ],
            "openshift-config-managed": [core("configmaps", READ, (INGRESS_CERTIFICATE,))],
        },
    )
    return operator_manifests(operator, "configs", CLUSTER_OPERATOR, group=IMAGE_REGISTRY_GROUP)
