"""The small configs a machine boots with. They say where the real one is, and whom to believe."""

from __future__ import annotations

from falsework.assets.ignition import Config, config
from falsework.site.model import Role

MCS_PORT = 22623


def pointer(role: Role, api_int_host: str, root_ca: bytes) -> Config:
    return config(merge=(f"https://{api_int_host}:{MCS_PORT}/config/{role}",), authorities=(root_ca,))
