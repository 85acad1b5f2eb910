"""Who gets what from the boot server. Nothing here touches a file or the network.

Kernel, initramfs, root image and boot scripts are for everybody. An Ignition config holds credentials: a machine gets
its own and no other, only at its own address, only while it is expected to boot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus

_CONFIGS = "ignition"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""All that names of boot files are made of. Nothing is decoded, so nothing can hide in an encoding."""
_LONGEST_PATH = 255


@dataclass(frozen=True)
class BootMachine:
    name: str
    mac: str
    address: str
    config: str
    """Its Ignition config below the folder of configs: `machines/master-0.ign`."""


Inventory = Mapping[str, BootMachine]
"""By address."""


class Folder(Enum):
    PUBLIC = "public"
    CONFIGS = "configs"


@dataclass(frozen=True)
class Allowed:
    folder: Folder
    path: tuple[str, ...]
    """Plain names, one below the other."""


@dataclass(frozen=True)
class Refused:
    status: HTTPStatus
    sentence: str
    """For the one who asked: it names nobody."""
    because: str
    """For the ledger."""


NOT_THERE = "There is nothing here."
_NOT_YOURS = "Configs are for machines of this site: each gets its own."
_NOT_NOW = "This machine is not expected to boot now."


def parse_inventory(content: bytes) -> Inventory:
    """ValueError says what is wrong with it."""
    data = json.loads(content)
    entries = data.get("machines") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise ValueError("it has no list `machines`")
    try:
        machines = [BootMachine(**{key: str(value) for key, value in entry.items()}) for entry in entries]
    except (TypeError, AttributeError):
        raise ValueError("a machine has name, mac, address and config, no more and no less") from None
    return {machine.address: machine for machine in machines}


def decide(target: str, client: str, inventory: Inventory, objection: str) -> Allowed | Refused:
    """`objection` is why the machine at the client's address is not expected to boot now; empty if it is."""
    path = _names(target)
    if path is None:
        return Refused(HTTPStatus.NOT_FOUND, NOT_THERE, "that is not the path of a boot file")
    if path[0] != _CONFIGS:
        return Allowed(Folder.PUBLIC, path)
    machine = inventory.get(client)
    if machine is None:
        return Refused(HTTPStatus.FORBIDDEN, _NOT_YOURS, "the address belongs to no machine of the site")
    config = "/".join(path[1:])
    if config != machine.config:
        return Refused(HTTPStatus.FORBIDDEN, _NOT_YOURS, _whose(config, machine, inventory))
    if objection:
        return Refused(HTTPStatus.FORBIDDEN, _NOT_NOW, objection)
    return Allowed(Folder.CONFIGS, path[1:])


def _names(target: str) -> tuple[str, ...] | None:
    path = target.partition("?")[0]
    names = path.split("/")
    if len(path) > _LONGEST_PATH or names[0] or len(names) < 2:
        return None
    return tuple(names[1:]) if all(_PLAIN_NAME.fullmatch(name) for name in names[1:]) else None


def _whose(config: str, machine: BootMachine, inventory: Inventory) -> str:
    owners = sorted(other.name for other in inventory.values() if other.config == config)
    whose = f"that is the config of {', '.join(owners)}" if owners else "that is the config of no machine"
    return f"{whose}; {machine.name} gets {machine.config} alone"
