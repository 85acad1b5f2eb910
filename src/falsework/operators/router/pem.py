"""Certificates as HAProxy will read them: judged by the same library, so that none of them can stop it."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache

_REMEMBERED = 1024


@lru_cache(_REMEMBERED)
def pair_fault(pem: str) -> str:
    """Why this is no certificate with its key; empty if it is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # The library takes files only: this one is in memory and has no name.
        with os.fdopen(os.memfd_create("certificate"), "wb") as file:
            file.write(pem.encode())
            file.flush()
            # A password is never asked for: there is nobody to give one.
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password="")
    except (ssl.SSLError, ValueError) as error:
        return f"it cannot be used: {_reason(error)}"
    return ""


@lru_cache(_REMEMBERED)
def bundle_fault(pem: str) -> str:
    """Why these are no certificates to be trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        return f"it cannot be used: {_reason(error)}"
    return ""


def _reason(error: Exception) -> str:
    """The library's own words, without what was in its hands."""
    words = getattr(error, "reason", None) or "it is no PEM"
    return str(words).lower().replace("_", " ")
