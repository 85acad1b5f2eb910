"""The small configs a machine boots with. They say where the real one is, and whom to believe."""

from __future__ import annotations

from falsework.assets.ignition import Config, config
from falsework.site.model import Role
from falsework.site.ports import MACHINE_CONFIG_SERVER


def pointer(role: Role, api_int_host: str, root_ca: bytes) -> Config:
    return config(merge=(f"https://{api_int_host}:{MACHINE_CONFIG_SERVER}/config/{role}",), authorities=(root_ca,))
