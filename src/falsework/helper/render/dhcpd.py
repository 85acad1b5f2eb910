"""ISC DHCP: a reservation for every machine, boot files by class."""

from __future__ import annotations

from falsework.helper import boot
from falsework.site.model import Site

PATH = "dhcpd.conf"


def render(site: Site) -> str:
    lines = [
        f"# DHCP for {site.domain}.",
        "authoritative;",
        "ddns-update-style none;",
        f"default-lease-time {boot.LEASE_SECONDS};",
        f"max-lease-time {boot.LEASE_SECONDS};",
        "",
        *_classes(site),
        "",
        f"subnet {site.lab.cidr.network_address} netmask {site.lab.cidr.netmask} {{",
        "    # No range: whoever is not listed below gets no address.",
        "    deny unknown-clients;",
        f"    option routers {site.lab.gateway};",
        f"    option broadcast-address {site.lab.cidr.broadcast_address};",
        f"    option domain-name-servers {site.helper.address};",
        f'    option domain-name "{site.domain}";',
        f'    option domain-search "{site.domain}";',
        f"    next-server {site.helper.address};",
        f'    filename "{boot.BIOS_LOADER}";',
        "}",
    ]
    for machine in site.machines:
        lines += [
            "",
            f"host {machine.name} {{",
            f"    hardware ethernet {machine.mac};",
            f"    fixed-address {machine.address};",
            f'    option host-name "{site.fqdn(machine)}";',
            "}",
        ]
    return "\n".join(lines) + "\n"


def _classes(site: Site) -> list[str]:
    """What a class says goes before what the subnet says, so the subnet has the file for everyone else."""
    codes = boot.uefi_codes(site)
    if not codes:
        return []
    is_uefi = " or ".join(f"option boot-architecture = {code >> 8:02x}:{code & 255:02x}" for code in codes)
    return [
        "# The firmware says what it is in option 93, iPXE says so with option 175.",
        f"option boot-architecture code {boot.ARCHITECTURE_OPTION} = unsigned integer 16;",
        f"option ipxe code {boot.IPXE_OPTION} = string;",
        'class "uefi" {',
        f"    match if ({is_uefi}) and not exists ipxe;",
        f'    filename "{boot.UEFI_LOADER}";',
        "}",
        'class "uefi-ipxe" {',
        f"    match if ({is_uefi}) and exists ipxe;",
        f'    filename "{boot.IPXE_SCRIPT}";',
        "}",
    ]
