"""The load balancer in a running helper."""

from __future__ import annotations

from pathlib import Path

from falsework.helper.balancer import Balancer
from falsework.helper.render.haproxy import RUNTIME_SOCKET
from falsework.machines.nspawn import Nspawn


def running_balancer(provider: Nspawn, helper: str) -> Balancer:
    """Its socket is in the machine, seen from the host through the machine's first process."""
    return Balancer(Path(f"/proc/{provider.init(helper)}/root{RUNTIME_SOCKET}"))
