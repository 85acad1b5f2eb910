"""The place Ignition runs in: the OS image as a system of its own, with the machine's root at /sysroot.

On a real machine this is the initramfs. All that is written here is in memory and gone afterwards: the config that is
kept in /run between Ignition's stages has keys in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from falsework.machines.firmware import mounts

SYSROOT = "sysroot"
CONFIG_FILE = "run/config.ign"

_DEVICES = ("null", "zero", "full", "random", "urandom")


@contextlib.contextmanager
def initramfs(
    os_root: Path, sysroot: Path, command_line: str, resolv_conf: str, config: Path | None = None
) -> Iterator[Path]:
    """Its root, for as long as the block lasts. The caller has a mount namespace of its own.

    `command_line` is what the kernel was started with, `config` an Ignition config to be found at CONFIG_FILE.
    """
    # Beside the machine's root, always the same: what a kill leaves of it is an empty folder, used again.
    memory = sysroot.with_name(f"{sysroot.name}.initramfs")
    memory.mkdir(exist_ok=True, mode=0o700)
    mounts.tmpfs(memory)
    try:
        view = memory / "view"
        for folder in (view, memory / "upper", memory / "work"):
            folder.mkdir()
        mounts.overlay(view, lower=os_root, upper=memory / "upper", work=memory / "work")
        _furnish(view, sysroot, command_line, resolv_conf, memory / "cmdline")
        if config is not None:
            _bind_file(config, view / CONFIG_FILE)
        yield view
    finally:
        mounts.detach(memory)
        memory.rmdir()


def _furnish(view: Path, sysroot: Path, command_line: str, resolv_conf: str, kept_command_line: Path) -> None:
    mounts.proc(view / "proc")
    mounts.sysfs(view / "sys")
    for name in _DEVICES:
        _bind_file(Path("/dev") / name, view / "dev" / name)
    (view / SYSROOT).mkdir(exist_ok=True)
    mounts.bind(sysroot, view / SYSROOT)
    # The kernel is the host's and was started with other words: Ignition reads ours.
    kept_command_line.write_text(f"{command_line}\n")
    mounts.bind(kept_command_line, view / "proc" / "cmdline")
    for name, text in (("resolv.conf", resolv_conf), ("hosts", "127.0.0.1 localhost\n::1 localhost\n")):
        place = view / "etc" / name
        place.unlink(missing_ok=True)
        place.write_text(text)


def _bind_file(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    mounts.bind(source, place)
