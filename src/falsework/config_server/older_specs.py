"""A config of spec 3.2 for an Ignition that knows no more than 3.0 or 3.1."""

from __future__ import annotations

from typing import Any

from falsework.assets.ignition import Config

_RESOURCE = {"source": None, "verification": {"hash": None}}
_NODE = {"path": None, "overwrite": None, "user": {"id": None, "name": None}, "group": {"id": None, "name": None}}
_FILE = {**_NODE, "mode": None, "contents": {**_RESOURCE, "compression": None}}
_LINK = {**_NODE, "target": None, "hard": None}
_UNIT = {"name": None, "enabled": None, "mask": None, "contents": None, "dropins": {"name": None, "contents": None}}
_USER = {"name": None, "sshAuthorizedKeys": None, "passwordHash": None, "groups": None, "shell": None, "uid": None}
_COMMON: dict[str, Any] = {
    "ignition": {"version": None},
    "storage": {"files": _FILE, "links": _LINK, "directories": {**_NODE, "mode": None}},
    "systemd": {"units": _UNIT},
    "passwd": {"users": _USER},
}
"""What a machine config is made of as a rule, and means the same in all specs of version 3."""


def in_spec(config: Config, spec: tuple[int, int]) -> Config:
    """The same config, called by an older spec's name. ValueError names what that spec may not have."""
    foreign = _foreign(config, _COMMON, "")
    if foreign:
        raise ValueError(f"{foreign} cannot be expressed in spec {spec[0]}.{spec[1]}.0")
    return {**config, "ignition": {**config["ignition"], "version": f"{spec[0]}.{spec[1]}.0"}}


def _foreign(value: Any, known: dict[str, Any] | None, place: str) -> str:
    """The first place in it that is not known; empty if all is."""
    if known is None:
        return ""
    if isinstance(value, list):
        return next(filter(None, (_foreign(entry, known, place) for entry in value)), "")
    if not isinstance(value, dict):
        return place
    for key, entry in value.items():
        below = f"{place}.{key}" if place else key
        if key not in known:
            return below
        if entry is not None and (foreign := _foreign(entry, known[key], below)):
            return foreign
    return ""
