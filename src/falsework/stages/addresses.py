"""Addresses that machines have given back.

dnsmasq keeps what it has read of a machine until its next start: told to read all again, 2.90 aborts. While it starts
it answers nobody, so that is put off until another machine is to have one of these addresses. Most never come back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from falsework.files import write_lasting_file
from falsework.lab.folder import NETWORK, Lab
from falsework.machines.firmware import dhcp
from falsework.machines.namespaces import inside
from falsework.machines.providers import provider_of
from falsework.site.model import Helper, Machine


def give_back(lab: Lab, helper: Helper, mac: str, address: str) -> None:
    """The lease at once; that its place is still kept is noted."""
    inside(lab.netns_path(NETWORK), lambda: dhcp.give_back(mac, address, str(helper.address)))
    _note(lab, _noted(lab) | {address: mac})


def make_free(lab: Lab, helper: Helper, machines: Iterable[Machine]) -> None:
    """For machines that are about to be switched on."""
    kept = _noted(lab)
    if any(kept.get(str(machine.address), machine.mac) != machine.mac for machine in machines):
        provider_of(lab).execute(helper.name, ("systemctl", "restart", "dnsmasq"))
        _note(lab, {})


def _file(lab: Lab) -> Path:
    return lab.root / "given-back.json"


def _noted(lab: Lab) -> dict[str, str]:
    """Address → the MAC it is still kept for."""
    try:
        found: dict[str, str] = json.loads(_file(lab).read_bytes())
    except FileNotFoundError:
        return {}
    return found


def _note(lab: Lab, kept: dict[str, str]) -> None:
    write_lasting_file(_file(lab), json.dumps(kept).encode(), 0o600)
