"""Certificates as HAProxy will read them: judged by the same library, so that none of them can stop it."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from functools import lru_cache

from falsework.errors import FalseworkError
from falsework.kube.client import Object

_REMEMBERED = 1024


def certificate_in(secret: Object | None, where: str) -> str:
    """With its key, from a Secret. FalseworkError if it cannot be used."""
    fix = "the ingress operator makes its own; another one is made by `kubectl create secret tls`"
    if secret is None:
        raise FalseworkError(f"there is no {where}", fix=fix)
    try:
        pem = "\n".join(base64.b64decode(secret["data"][key]).decode() for key in ("tls.crt", "tls.key"))
        fault = pair_fault(pem)
    except (KeyError, binascii.Error, UnicodeDecodeError):
        fault = "tls.crt or tls.key is missing, or is no PEM"
    if fault:
        raise FalseworkError(f"{where} is of no use", cause=fault, fix=fix)
    return pem


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
