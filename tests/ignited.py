"""The bootstrap machine's files as Ignition leaves them, below a folder."""

from __future__ import annotations

import json
from pathlib import Path

from falsework.assets.catalogue import Step, create
from falsework.assets.ignition import content_of
from falsework.site.load import default_site


def ignited(folder: Path, scratch: Path) -> Path:
    """A root with all files of bootstrap.ign; the assets they are from are in `scratch`."""
    create(default_site(), scratch, Step.ALL)
    config = json.loads((scratch / "bootstrap.ign").read_bytes())
    for entry in config["storage"]["files"]:
        path = folder / entry["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content_of(entry["contents"]["source"]))
        path.chmod(entry["mode"])
    return folder
