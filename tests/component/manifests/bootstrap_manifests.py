"""The folder of manifests a bootstrap machine has when it starts to create them."""

from __future__ import annotations

import json
from pathlib import Path

from falsework.assets.catalogue import Step, create
from falsework.assets.ignition import files_in
from falsework.assets.serialize import to_yaml
from falsework.manifests.release import api_manifests, config_manifests
from falsework.site.model import Site

_PLACES = (
    "/opt/openshift/manifests/",
    "/opt/openshift/openshift/",
    "/etc/mcs/bootstrap/machine-pools/",
    "/etc/mcs/bootstrap/machine-configs/",
)


def bootstrap_manifests(site: Site, folder: Path, *, with_release: bool = True) -> Path:
    """What bootstrap.ign brings, the site's machine configs and pools, and what the release has for every cluster."""
    assets, result = folder / "assets", folder / "manifests"
    create(site, assets, Step.ALL)
    result.mkdir()
    for path, content in files_in(json.loads((assets / "bootstrap.ign").read_bytes())).items():
        if path.startswith(_PLACES):
            (result / Path(path).name).write_bytes(content)
    if with_release:
        for name, objects in {**api_manifests(), **config_manifests()}.items():
            (result / name).write_bytes(to_yaml(*objects))
    return result
