"""Each module here is one operator: `manifests(version, images)` gives its rights and how it is run."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from falsework.errors import FalseworkError
from falsework.manifests.objects import Manifests


def operators(version: str, images: Mapping[str, str]) -> Manifests:
    """Of all operators. `images` are the release's, by name."""
    result: Manifests = {}
    known = _Images(images)
    for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        result |= importlib.import_module(f"{__name__}.{module}").manifests(version, known)
    return result


class _Images(dict[str, str]):
    def __missing__(self, name: str) -> str:
        raise FalseworkError(f"nobody says which image {name} is", fix=f"name it: --image {name}=<reference>")
