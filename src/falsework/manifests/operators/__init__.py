"""Each module here is one operator: `manifests(version, images)` gives its rights and how it is run."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from falsework.errors import FalseworkError
from falsework.manifests.objects import Manifests

AFTER_PIVOT = "falsework.io/after-pivot"
"""Nothing needs it while the bootstrap raises the control plane, which it would only slow down."""

_BEFORE_PIVOT = ("cluster_version", "etcd", "kube_", "machine_", "network")
"""How the names of the modules begin that bring what the pivot waits for."""


def operators(version: str, images: Mapping[str, str]) -> Manifests:
    """Of all operators. `images` are the release's, by name."""
    result: Manifests = {}
    known = _Images(images)
    for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        found: Manifests = importlib.import_module(f"{__name__}.{module}").manifests(version, known)
        result |= found if module.startswith(_BEFORE_PIVOT) else _after_pivot(found)
    return result


def _after_pivot(manifests: Manifests) -> Manifests:
    for bodies in manifests.values():
        for body in bodies:
            body["metadata"].setdefault("annotations", {})[AFTER_PIVOT] = "true"
    return manifests


class _Images(dict[str, str]):
    def __missing__(self, name: str) -> str:
        raise FalseworkError(f"nobody says which image {name} is", fix=f"name it: --image {name}=<reference>")
