"""Who may look into a lab and change it: root, and only one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from falsework.errors import FalseworkError
from falsework.files import only_one
from falsework.lab.folder import Lab


@contextlib.contextmanager
def as_root(lab: Lab) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise FalseworkError(
            f"{error.filename or lab.root}: {error.strerror}",
            cause="machines' disks and keys are in a lab, so it is root's",
            fix="run the same command with sudo",
        ) from None


@contextlib.contextmanager
def changing(lab: Lab, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lab's lock while the block runs."""
    with as_root(lab), only_one(lab.lock, lambda owner: say(f"{owner} is changing this lab; waiting for it")):
        yield
