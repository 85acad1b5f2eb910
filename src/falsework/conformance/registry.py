"""Where a lab's nodes get the test images from: the registry they have the release's from."""

from __future__ import annotations

from pathlib import Path

from falsework.errors import FalseworkError
from falsework.helper.services import REGISTRY_STORE
from falsework.machines.settings import MachineFolder
from falsework.machines.view import View


def store_of(view: View) -> Path:
    """The folder of this host that the helper's registry reads."""
    helper = view.site.helper.name
    settings = MachineFolder(view.lab.machine(helper)).settings()
    store = settings and settings.binds.get(REGISTRY_STORE)
    if not store:
        raise FalseworkError(
            f"{helper} has no registry for the tests' images",
            cause="it was made without one, or not yet",
            fix="run `falsework up` for a site whose distribution is kubernetes",
        )
    return Path(store)
