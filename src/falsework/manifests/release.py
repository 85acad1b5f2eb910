"""The release's manifests, by OpenShift's file names: 0000_<run level>_<component>_<the rest>."""

from __future__ import annotations

from falsework.manifests import config_api, machine_config_api, operator_api
from falsework.manifests.cluster_objects import cluster_objects
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import Object
from falsework.manifests.schema import Definition

Manifests = dict[str, list[Object]]
"""File name → its objects."""


def definitions() -> list[Definition]:
    return [*config_api.definitions(), *operator_api.definitions(), *machine_config_api.definitions()]


def api_manifests() -> Manifests:
    """The custom resource definitions: bootkube's stage api-bootstrap."""
    return _sorted({definition.file: [definition.manifest()] for definition in definitions()})


def config_manifests() -> Manifests:
    """Namespaces, rights, first objects: bootkube's stage config-bootstrap."""
    return _sorted(cluster_objects())


def release_manifests(version: str) -> Manifests:
    """All of them: what the Cluster Version Operator keeps."""
    return _sorted({**api_manifests(), **config_manifests(), **cluster_operators(version)})


def _sorted(manifests: Manifests) -> Manifests:
    return dict(sorted(manifests.items()))
