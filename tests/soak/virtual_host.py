"""A throw-away virtual machine with Debian, as a host for Falsework: a kernel, control groups and a PID 1 of its own.

It has no network. What it runs comes in its disk image, what it says goes out through its serial port.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from falsework.files import remove_tree
from falsework.host import packages
from falsework.process import run
from falsework.release.debian import host_sources

_SUITE = "bookworm"
_PACKAGES = (
    *("linux-image-cloud-amd64", "initramfs-tools", "busybox", "systemd-sysv", "dbus", "libpam-systemd", "udev"),
    *("systemd-container", "iproute2", "nftables", "procps", "openssh-client", "slirp4netns", "curl"),
    # Falsework runs with the distribution's Python there, which need not be the one of this host.
    *("python3-pytest", "python3-yaml", "python3-cryptography", "python3-bcrypt"),
)
_PROGRAMS = ("unshare", "mmdebstrap", "debian-archive-keyring", "mke2fs", "qemu-system-x86_64")
_SIZE = "12G"
_DISK = "root.ext4"
_SILENCE = 600.0
"""Without a word for so long it hangs: emulation is slow, and a test says nothing before its end."""


@dataclass(frozen=True)
class VirtualHost:
    """A built one. Every run starts from the same disk; what a run writes is gone with it."""

    folder: Path

    def console(self) -> str:
        """What its console has shown in the last run."""
        return (self.folder / "console.log").read_text(errors="replace")

    def run(self, init: str, say: Callable[[str], None]) -> None:
        """Until it switches itself off, with this program as the first process. `say` gets what comes out of its
        second serial port, line by line; its console is in console.log."""
        # An emulated processor is slow, but is there on every host. Where KVM is usable, it may be asked for.
        accelerator = os.environ.get("FALSEWORK_SOAK_ACCELERATOR", "tcg")
        run(
            (
                *("nice", "-n", "10", "qemu-system-x86_64", "-accel", accelerator, "-smp", "2", "-m", "4096"),
                *("-nodefaults", "-nographic", "-no-reboot"),
                *("-kernel", self.folder / "vmlinuz", "-initrd", self.folder / "initrd.img"),
                *("-append", f"root=/dev/vda rw console=ttyS0 panic=-1 init={init}"),
                *("-drive", f"file={self.folder / _DISK},if=virtio,format=raw,snapshot=on,cache=unsafe"),
                *("-serial", f"file:{self.folder / 'console.log'}", "-serial", "stdio"),
            ),
            env={"TMPDIR": str(self.folder)},
            silence_limit=_SILENCE,
            each_line=say,
        )


def build(
    folder: Path, content: Mapping[str, Path], units: Iterable[str], report: Callable[[str], None]
) -> VirtualHost:
    """`content`: place in it → file or folder of this host. `units`: those in it that start by themselves."""
    packages.ensure(_PROGRAMS, report)
    root = folder / "root"
    report(f"a Debian {_SUITE} with a kernel")
    run(
        (
            # It mounts the host's /dev and /sys in there; should it be killed, they must be gone before the folder is.
            *("unshare", "--mount", "--propagation", "private"),
            *("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"),
            f"--include={','.join(_PACKAGES)}",
            *("--aptopt=Acquire::Retries 5", "--dpkgopt=force-unsafe-io"),
            *(_SUITE, str(root), *host_sources(_SUITE)),
        ),
        env={"TMPDIR": str(folder), "LC_ALL": "C"},
        silence_limit=300.0,
    )
    for name in ("vmlinuz", "initrd.img"):
        (kernel,) = (root / "boot").glob(f"{name}-*")
        shutil.copyfile(kernel, folder / name)
    for place, source in content.items():
        target = root / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Big trees are linked where they can be, not copied: all that follows only reads them.
        linked = ("--link",) if source.stat().st_dev == folder.stat().st_dev else ()
        run(("cp", "--archive", *linked, source, target))
    for unit in units:
        (root / "etc/systemd/system/multi-user.target.wants" / Path(unit).name).symlink_to(unit)
    report("its disk")
    run(("mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0,lazy_itable_init=1", "-d", root, folder / _DISK, _SIZE))
    remove_tree(root)
    return VirtualHost(folder)
