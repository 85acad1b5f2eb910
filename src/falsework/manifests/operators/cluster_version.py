"""The Cluster Version Operator on a master: made by its predecessor on the bootstrap machine, kept by itself."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import Manifests
from falsework.manifests.workload import Workload, deployment

NAMESPACE = "openshift-cluster-version"
NAME = "cluster-version-operator"
PORT = 9099


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    workload = Workload(
        prefix="0000_00_cluster-version-operator",
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image=images["falsework"],
        images={name: reference for name, reference in images.items() if name != "release"},
        arguments=[f"--release-image={images['release']}"],
        cpu="20m",
    )
    return workload.manifests(deployment(workload), "deployment")
