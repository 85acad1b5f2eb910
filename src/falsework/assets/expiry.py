"""When the content of a file expires: read from the certificates in it, however deep they are wrapped.

Looked up in the file itself rather than remembered, because a person may have changed it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import datetime

from cryptography import x509

from falsework.assets.pki import life_of, load_certificates

_PEM = re.compile(rb"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{80,}={0,2}")


def expiry_of(content: bytes) -> datetime | None:
    """The first moment at which something in it is no longer good; None if nothing in it expires."""
    return min((life_of(certificate).ends for certificate in certificates_within(content)), default=None)


def certificates_within(content: bytes) -> Iterator[x509.Certificate]:
    """Certificates as they are, in kubeconfigs and Secrets (base64), in Ignition configs (base64 around that)."""
    for block in _PEM.finditer(content):
        if block.group(1) == b"CERTIFICATE":
            yield load_certificates(block.group(0))[0]
    for match in _BASE64.finditer(_PEM.sub(b"", content)):
        try:
            inside = base64.b64decode(match.group(0), validate=True)
        except binascii.Error:
            continue
        yield from certificates_within(inside)
