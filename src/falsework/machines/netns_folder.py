"""The folder all named network namespaces of a host are in. It has to be a mount that is shared.

`ip netns add` makes it one where it is not, and never takes that away. What Falsework makes has its name on it, so that
the last lab to go can take it away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from falsework.lab.journal import Journal, Thing
from falsework.machines.namespaces import FOLDER
from falsework.process import CommandError, run

KIND = "netns-folder"
_SOURCE = "falsework"


def ensure(journal: Journal) -> None:
    """Have the folder. One with something in it that is no mount yet is left to `ip`, which keeps what is there."""
    source = _mounted_from()
    if source is None and not (FOLDER.is_dir() and any(FOLDER.iterdir())):
        journal.creating(KIND, str(FOLDER), folder="there" if FOLDER.is_dir() else "made")
        FOLDER.mkdir(parents=True, exist_ok=True)
        with _turn():
            if _mounted_from() is None:
                run(("mount", "-t", "tmpfs", "-o", "mode=755", "--make-shared", _SOURCE, FOLDER))
    elif source == _SOURCE:
        # Another lab made it and may go before we do.
        journal.creating(KIND, str(FOLDER), folder="made")


def remove(thing: Thing) -> None:
    """Take the mount away, unless it is not ours or another has something in it by now."""
    if _mounted_from() == _SOURCE and not any(FOLDER.iterdir()):
        # It is busy if another lab was quicker; then it is that lab's.
        with contextlib.suppress(CommandError):
            run(("umount", FOLDER))
    if _mounted_from() is None and thing.detail.get("folder") == "made":
        with contextlib.suppress(OSError):
            FOLDER.rmdir()


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Two labs may be made at the same moment; the mount must be made once."""
    descriptor = os.open(FOLDER, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _mounted_from() -> str | None:
    """What is mounted at the folder, None if nothing is."""
    source = None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, rest = line.partition(" - ")
        if place.split()[4] == str(FOLDER):
            source = rest.split()[1]
    return source
