"""Mounting without a program for it: a boot makes a dozen mounts, and six machines boot at once."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from falsework.errors import FalseworkError

_libc = ctypes.CDLL(None, use_errno=True)

_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC, _BIND = 1, 2, 4, 8, 4096
_DETACH, _NO_FOLLOW = 2, 8


def tmpfs(place: Path) -> None:
    _mount("tmpfs", place, "tmpfs", 0, "mode=0700")


def proc(place: Path) -> None:
    _mount("proc", place, "proc", _NO_SUID | _NO_DEVICES | _NO_EXEC)


def sysfs(place: Path) -> None:
    _mount("sysfs", place, "sysfs", _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_EXEC)


def overlay(place: Path, lower: Path, upper: Path, work: Path) -> None:
    options = {"lowerdir": lower, "upperdir": upper, "workdir": work}
    _mount("overlay", place, "overlay", 0, ",".join(f"{name}={_escaped(path)}" for name, path in options.items()))


def bind(source: Path, place: Path) -> None:
    _mount(str(source), place, "", _BIND)


def detach(place: Path) -> None:
    """With all that is mounted below it; what is still in use goes when it is no longer."""
    _check(_libc.umount2(os.fsencode(place), _DETACH | _NO_FOLLOW), place)


def _mount(source: str, place: Path, kind: str, flags: int, options: str = "") -> None:
    words = (os.fsencode(source), os.fsencode(place), kind.encode())
    _check(_libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options)), place)


def _check(result: int, place: Path) -> None:
    if result != 0:
        raise FalseworkError(f"{place} could not be mounted or unmounted", cause=os.strerror(ctypes.get_errno()))


def _escaped(path: Path) -> str:
    """Overlay's options are divided by commas, its lower folders by colons."""
    text = str(path)
    for sign in "\\,:":
        text = text.replace(sign, f"\\{sign}")
    return text
