"""What the boot server needs in the helper machine, made on the host: its unit and the list of machines."""

from __future__ import annotations

import json

from falsework import machine_code
from falsework.assets.ignition import Unit
from falsework.assets.serialize import to_unit
from falsework.helper.boot import config_path
from falsework.site.model import Site
from falsework.site.ports import BOOT_HTTP

UNIT = "boot-server.service"
USER = "www-data"
"""In every Debian, and with nothing of its own in the helper."""


def inventory(site: Site) -> bytes:
    """The content of `bootserver.INVENTORY`."""
    machines = [
        {
            "name": machine.name,
            "mac": machine.mac,
            "address": str(machine.address),
            "config": config_path(site, machine),
        }
        for machine in site.machines
    ]
    return json.dumps({"machines": machines}, indent=1).encode() + b"\n"


def boot_server_unit() -> Unit:
    contents = to_unit(
        Unit={
            "Description": "Falsework: boot files and Ignition configs over HTTP",
            "After": "network.target",
            "ConditionPathExists": machine_code.PATH,
        },
        Service={
            "Type": "notify",
            "ExecStart": " ".join((*machine_code.command("boot-server"), f"--port={BOOT_HTTP}")),
            "User": USER,
            "Group": USER,
            "Restart": "always",
            "RestartSec": "500ms",
            "LimitNOFILE": "4096",
            "CapabilityBoundingSet": "",
            "NoNewPrivileges": "yes",
            "ProtectSystem": "strict",
            "ProtectHome": "yes",
            "PrivateTmp": "yes",
            "RestrictAddressFamilies": "AF_INET AF_UNIX",
        },
        Install={"WantedBy": "multi-user.target"},
    )
    return Unit(UNIT, contents, enabled=True)
