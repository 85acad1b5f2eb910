"""What boot loaders ask for: a pxelinux config and an iPXE script for every machine, found by its MAC."""

from __future__ import annotations

from falsework.helper.boot import IPXE_SCRIPT, Boot, base_url, boots, dashed_mac
from falsework.site.model import Site


def render(site: Site) -> dict[str, str]:
    """Below the TFTP root, and the folder `ipxe` below the HTTP server's too."""
    files = {IPXE_SCRIPT: _entry(site)}
    for boot in boots(site):
        mac = dashed_mac(boot.machine)
        # 01 is the hardware type: Ethernet.
        files[f"pxelinux.cfg/01-{mac}"] = _pxelinux(site, boot)
        files[f"ipxe/{mac}.ipxe"] = _ipxe(site, boot)
    return files


def _pxelinux(site: Site, boot: Boot) -> str:
    lines = [
        f"# {site.fqdn(boot.machine)}",
        f"DEFAULT {boot.machine.role}",
        "PROMPT 0",
        f"LABEL {boot.machine.role}",
        f"  KERNEL {boot.files.kernel}",
        f"  INITRD {boot.files.initramfs}",
        f"  APPEND {' '.join(boot.arguments)}",
    ]
    return "\n".join(lines) + "\n"


def _entry(site: Site) -> str:
    """The same for all: it goes on to the script of the machine it runs on."""
    lines = [
        "#!ipxe",
        f"chain --autofree {base_url(site)}/ipxe/${{mac:hexhyp}}.ipxe || echo There is no boot script for ${{mac}}",
        "echo Going on with the next boot device",
        "sleep 3",
        "exit 1",
    ]
    return "\n".join(lines) + "\n"


def _ipxe(site: Site, boot: Boot) -> str:
    """Kernel and initramfs by HTTP, which is many times faster than TFTP."""
    url = base_url(site)
    initramfs = boot.files.initramfs.rpartition("/")[2]
    lines = [
        "#!ipxe",
        f"# {site.fqdn(boot.machine)}",
        # With UEFI the kernel itself looks for the initramfs, by this name.
        f"kernel {url}/{boot.files.kernel} initrd={initramfs} {' '.join(boot.arguments)}",
        f"initrd --name {initramfs} {url}/{boot.files.initramfs}",
        "boot",
    ]
    return "\n".join(lines) + "\n"
