"""Who may look into a lab and change it: root, and only one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from falsework.errors import FalseworkError
from falsework.files import explained_disk_errors, only_one
from falsework.lab.folder import Lab


@contextlib.contextmanager
def looking_into(lab: Lab) -> Iterator[None]:
    """While the block reads what is in the lab's folder."""
    try:
        yield
    except PermissionError as error:
        raise FalseworkError(
            f"{error.filename or lab.root} cannot be read",
            cause="machines' disks and keys are in a lab, so it is root's",
            fix="run the same command with sudo",
        ) from None


@contextlib.contextmanager
def changing(lab: Lab, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lab's lock while the block runs."""
    with (
        explained_disk_errors(lab.root.parent, "every machine writes logs and data there", "FALSEWORK_STATE"),
        only_one(lab.lock, lambda owner: say(f"{owner} is changing this lab; waiting for it")),
    ):
        yield
