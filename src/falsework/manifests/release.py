"""The release's manifests, by OpenShift's file names: 0000_<run level>_<component>_<the rest>."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests import config_api, machine_config_api, operator_api, route_api
from falsework.manifests.cluster_objects import cluster_objects
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import Manifests
from falsework.manifests.operators import operators
from falsework.manifests.schema import Definition


def definitions() -> list[Definition]:
    return [
        *config_api.definitions(),
        *operator_api.definitions(),
        *machine_config_api.definitions(),
        *route_api.definitions(),
    ]


def api_manifests() -> Manifests:
    """The custom resource definitions: bootkube's stage api-bootstrap."""
    return _sorted({definition.file: [definition.manifest()] for definition in definitions()})


def config_manifests() -> Manifests:
    """Namespaces, rights, first objects: bootkube's stage config-bootstrap."""
    return _sorted(cluster_objects())


def release_manifests(version: str, images: Mapping[str, str]) -> Manifests:
    """All of them: what the Cluster Version Operator keeps. `images` are the release's, by name."""
    return _sorted(
        {**api_manifests(), **config_manifests(), **cluster_operators(version), **operators(version, images)}
    )


def _sorted(manifests: Manifests) -> Manifests:
    return dict(sorted(manifests.items()))
