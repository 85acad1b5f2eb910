"""What a machine is told to boot: which file for which firmware, which kernel, with which words.

The DHCP servers say the first, the boot loaders' own files say the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from falsework.assets.ignition_configs import BOOTSTRAP, machine_asset
from falsework.site.model import Architecture, Distribution, Machine, Provider, Role, Site
from falsework.site.ports import BOOT_HTTP

TFTP_ROOT = "/var/lib/tftpboot"
LEASE_SECONDS = 4 * 3600

BIOS_LOADER = "pxelinux.0"
"""For everything that does not say it is UEFI: an old BIOS says nothing at all."""
UEFI_LOADER = "ipxe.efi"
IPXE_SCRIPT = "boot.ipxe"
"""Asked for by an iPXE, ours or one in the card's ROM, on a machine with UEFI."""

HOST_NAME_OPTION = 12
ARCHITECTURE_OPTION = 93
IPXE_OPTION = 175
"""Only iPXE sends it."""
_UEFI_CODES = {Architecture.AMD64: (7, 9), Architecture.ARM64: (11,)}
"""What UEFI firmware says in option 93. For x64 most of it says 7, and some 9."""


@dataclass(frozen=True)
class BootFiles:
    """Where kernel, initramfs and root image are, below the TFTP root and below the HTTP server's alike."""

    kernel: str
    initramfs: str
    root: str


@dataclass(frozen=True)
class Boot:
    """How one machine boots."""

    machine: Machine
    files: BootFiles
    arguments: tuple[str, ...]


def uefi_codes(site: Site) -> tuple[int, ...]:
    return _UEFI_CODES.get(site.architecture, ())


def base_url(site: Site) -> str:
    """By address: a machine that boots has enough to wait for without DNS."""
    return f"http://{site.helper.address}:{BOOT_HTTP}"


def boots(site: Site) -> list[Boot]:
    return [boot_of(site, machine) for machine in site.machines]


def boot_of(site: Site, machine: Machine) -> Boot:
    files = boot_files(site)
    config = f"{base_url(site)}/ignition/{config_path(site, machine)}"
    arguments = ["ip=dhcp", "rd.neednet=1", f"coreos.live.rootfs_url={base_url(site)}/{files.root}"]
    if site.distribution is Distribution.OPENSHIFT:
        # The live system only writes the real one to the disk, which then boots with this config.
        arguments += [f"coreos.inst.install_dev={_disk(machine)}", f"coreos.inst.ignition_url={config}"]
    else:
        arguments += ["ignition.firstboot", "ignition.platform.id=metal", f"ignition.config.url={config}"]
    # The last console named is the one the boot's own messages go to.
    return Boot(machine, files, (*arguments, "console=tty0", "console=ttyS0"))


def boot_files(site: Site) -> BootFiles:
    """RHCOS has the folder it has in every guide; the other is ours."""
    folder = "rhcos" if site.distribution is Distribution.OPENSHIFT else "falsework"
    return BootFiles(f"{folder}/kernel", f"{folder}/initramfs.img", f"{folder}/rootfs.img")


def config_path(site: Site, machine: Machine) -> str:
    """The machine's Ignition config, as the folder with the assets has it."""
    if machine.role is Role.BOOTSTRAP:
        return BOOTSTRAP
    if site.distribution is Distribution.OPENSHIFT:
        return f"{machine.role}.ign"
    return machine_asset(machine)


def dashed_mac(machine: Machine) -> str:
    """As boot loaders write it in file names."""
    return machine.mac.replace(":", "-")


def _disk(machine: Machine) -> str:
    return "/dev/sda" if machine.provider is Provider.MANUAL else "/dev/vda"
