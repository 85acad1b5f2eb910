"""Telling systemd how a service of ours is doing. The standard library alone: it runs in machines."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """`READY=1` and the like; nothing happens where nobody listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        # A leading @ stands for a name that is not in the file system.
        sender.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
