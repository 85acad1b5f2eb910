"""The machine's network interface, set as the lease says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from falsework.process import run


def bring_up(interface: str) -> None:
    """The interface and loopback on, without addresses of an earlier boot."""
    _ip(["link set dev lo up", f"address flush dev {interface}", f"link set dev {interface} up"])


def set_address(interface: str, address: str, router: str | None) -> None:
    """`address` has its prefix length."""
    # For ever: nobody asks again before the lease ends, and its server gives the address to no other machine.
    lines = [f"address add {address} broadcast + dev {interface}"]
    if router:
        lines.append(f"route replace default via {router} dev {interface}")
    _ip(lines)


def _ip(lines: Sequence[str]) -> None:
    """All of it in one process."""
    with tempfile.NamedTemporaryFile("w", prefix="falsework-ip-") as batch:
        batch.write("\n".join(lines) + "\n")
        batch.flush()
        run(("ip", "-batch", batch.name))
