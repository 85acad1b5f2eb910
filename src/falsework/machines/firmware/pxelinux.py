"""What pxelinux does: finds the machine's config by its names for it, and reads what to boot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from socket import inet_aton

from falsework.errors import FalseworkError

LOADER = "pxelinux.0"


@dataclass(frozen=True)
class BootEntry:
    kernel: str
    initramfs: str
    arguments: tuple[str, ...]

    @property
    def command_line(self) -> str:
        """As the booted kernel shows it in /proc/cmdline."""
        initramfs = [f"initrd={self.initramfs}"] if self.initramfs else []
        return " ".join([f"BOOT_IMAGE={self.kernel}", *initramfs, *self.arguments])


def config_files(boot_file: str, mac: str, address: str) -> Iterator[str]:
    """Where the config may be, in pxelinux's order: by MAC, by address, by ever larger networks, for all."""
    folder = f"{boot_file.rpartition('/')[0]}/pxelinux.cfg".lstrip("/")
    # 01 is the hardware type: Ethernet.
    yield f"{folder}/01-{mac.lower().replace(':', '-')}"
    digits = inet_aton(address).hex().upper()
    yield from (f"{folder}/{digits[:length]}" for length in range(len(digits), 0, -1))
    yield f"{folder}/default"


def boot_entry(file: str, text: str) -> BootEntry:
    """The entry booted when nobody is there to choose."""
    labels: dict[str, dict[str, str]] = {}
    common: dict[str, str] = {}
    here = common
    for line in text.splitlines():
        keyword, value = (*line.split(maxsplit=1), "", "")[:2]
        keyword, value = keyword.upper(), value.strip()
        if keyword == "LABEL":
            here = labels.setdefault(value, {})
        elif keyword == "DEFAULT":
            common["DEFAULT"] = value
        elif keyword in ("KERNEL", "LINUX"):
            here["KERNEL"] = value
        elif keyword in ("INITRD", "APPEND"):
            here[keyword] = value
    chosen = labels.get(common.get("DEFAULT") or next(iter(labels), ""))
    if not chosen or not chosen.get("KERNEL"):
        raise FalseworkError(
            f"the boot config {file} does not say what to boot",
            cause="its default entry is not there, or names no kernel",
            fix="'falsework render pxe' shows what it should be",
        )
    append = chosen.get("APPEND", common.get("APPEND", ""))
    words = () if append == "-" else append.split()
    # The initramfs may be named among the arguments too.
    named = [word.removeprefix("initrd=") for word in words if word.startswith("initrd=")]
    return BootEntry(
        kernel=chosen["KERNEL"],
        initramfs=chosen.get("INITRD", "") or (named[-1] if named else ""),
        arguments=tuple(word for word in words if not word.startswith("initrd=")),
    )
