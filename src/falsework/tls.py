"""TLS with whoever answers."""

from __future__ import annotations

import ssl


def unchecked() -> ssl.SSLContext:
    """For whoever tells the other side nothing, and does not care who it is.

    Not Python's default context: that reads all authorities of the system first, which takes longer than the rest.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
