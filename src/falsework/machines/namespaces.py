"""Entering and removing network namespaces that have a name, without another program."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from falsework.machines.firmware import mounts

FOLDER = Path("/run/netns")
_NEW_NET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def is_namespace(path: Path) -> bool:
    """Whether a name is that of a namespace: a kill while it was made leaves a plain file, of the folder's device."""
    try:
        return path.stat().st_dev != path.parent.stat().st_dev
    except FileNotFoundError:
        return False


def enter(path: Path) -> None:
    """Move this thread, and no other, into a network namespace."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(descriptor, _NEW_NET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(descriptor)


def inside(path: Path, action: Callable[[], T]) -> T:
    """What `action` returns when it is done in a network namespace, by a thread that ends there."""
    results: list[T] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            enter(path)
            results.append(action())
        except Exception as error:  # noqa: BLE001 - it is raised again where it can be seen
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def remove(path: Path) -> None:
    """Take a namespace's name away. It ends with the last process in it; without one, now."""
    while is_namespace(path):
        mounts.detach(path)
    path.unlink(missing_ok=True)
