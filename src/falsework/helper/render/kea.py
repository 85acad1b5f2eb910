"""Kea: the same reservations and classes as for ISC DHCP, which it follows, as JSON."""

from __future__ import annotations

import json
from typing import Any

from falsework.helper import boot
from falsework.site.model import Machine, Site

PATH = "kea-dhcp4.conf"


def render(site: Site) -> str:
    return json.dumps({"Dhcp4": _dhcp4(site)}, indent=2) + "\n"


def _dhcp4(site: Site) -> dict[str, Any]:
    return {
        # Kea answers only where an interface has an address of the subnet.
        "interfaces-config": {"interfaces": ["*"]},
        "lease-database": {"type": "memfile", "persist": True},
        "valid-lifetime": boot.LEASE_SECONDS,
        "authoritative": True,
        "host-reservation-identifiers": ["hw-address"],
        # The reservations are the whole list: nothing is registered in DNS from here.
        "ddns-send-updates": False,
        "client-classes": _classes(site),
        "subnet4": [
            {
                "id": 1,
                "subnet": str(site.lab.cidr),
                # No pools: whoever has no reservation gets no address.
                "pools": [],
                "reservations-in-subnet": True,
                "reservations-out-of-pool": True,
                "next-server": str(site.helper.address),
                "option-data": [
                    {"name": "routers", "data": str(site.lab.gateway)},
                    {"name": "domain-name-servers", "data": str(site.helper.address)},
                    {"name": "domain-name", "data": site.domain},
                    {"name": "domain-search", "data": site.domain},
                ],
                "reservations": [_reservation(site, machine) for machine in site.machines],
            }
        ],
    }


def _classes(site: Site) -> list[dict[str, str]]:
    """Of the classes a client is in, the first with a boot file decides; no client is in two of these."""
    option = f"option[{boot.ARCHITECTURE_OPTION}].hex"
    ipxe = f"option[{boot.IPXE_OPTION}].exists"
    codes = boot.uefi_codes(site)
    is_uefi = "(" + " or ".join(f"{option} == 0x{code:04x}" for code in codes) + ")"
    classes = {"uefi": f"{is_uefi} and not {ipxe}", "uefi-ipxe": f"{is_uefi} and {ipxe}", "bios": f"not {is_uefi}"}
    files = {"uefi": boot.UEFI_LOADER, "uefi-ipxe": boot.IPXE_SCRIPT, "bios": boot.BIOS_LOADER}
    if not codes:
        classes = {"bios": "'all' == 'all'"}
    return [{"name": name, "test": test, "boot-file-name": files[name]} for name, test in classes.items()]


def _reservation(site: Site, machine: Machine) -> dict[str, str]:
    return {"hw-address": machine.mac, "ip-address": str(machine.address), "hostname": site.fqdn(machine)}
