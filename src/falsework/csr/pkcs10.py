"""What a certificate request asks for: a subject's CN and Os, and DNS names and addresses. Nothing else.

Whatever a kubelet does not write is refused: other attributes of a name, other extensions, other kinds of names,
text around the PEM block. So no two readers can see different things in a request that passes here. Whether the key
belongs to who asks (the signature) is checked by the API server when the request is created.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from dataclasses import dataclass

from falsework.csr.der import (
    BIT_STRING,
    INTEGER,
    OCTET_STRING,
    OID,
    PRINTABLE_STRING,
    SEQUENCE,
    SET,
    UTF8_STRING,
    DerError,
    Reader,
)

SIZE_LIMIT = 16 << 10
"""A kubelet's request with an RSA key has 2 KiB."""

_PEM = re.compile(
    rb"-----BEGIN CERTIFICATE REQUEST-----\n([A-Za-z0-9+/\n]+={0,2}\n?)-----END CERTIFICATE REQUEST-----\n?"
)
_COMMON_NAME, _ORGANIZATION = b"\x55\x04\x03", b"\x55\x04\x0a"
_EXTENSION_REQUEST = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x0e"
_ALTERNATIVE_NAMES = b"\x55\x1d\x11"
_ATTRIBUTES, _DNS_NAME, _ADDRESS = 0xA0, 0x82, 0x87
_PRINTABLE = re.compile(rb"[A-Za-z0-9 '()+,\-./:=?]*")
_DNS_CHARACTERS = re.compile(rb"[A-Za-z0-9.\-_*]+")

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotUnderstoodError(ValueError):
    """Not a request a kubelet would write. The text says what is strange about it."""


@dataclass(frozen=True)
class Asked:
    common_name: str
    organizations: tuple[str, ...]
    dns: tuple[str, ...] = ()
    addresses: tuple[IPAddress, ...] = ()


def read_request(pem: bytes) -> Asked:
    if len(pem) > SIZE_LIMIT:
        raise NotUnderstoodError("it is too large")
    match = _PEM.fullmatch(pem)
    if match is None:
        raise NotUnderstoodError("it is not one PEM block with a certificate request")
    try:
        return _request(Reader.of(base64.b64decode(match[1].replace(b"\n", b""), validate=True)))
    except binascii.Error:
        raise NotUnderstoodError("it is not base64") from None
    except DerError as error:
        raise NotUnderstoodError(str(error)) from None


def _request(whole: Reader) -> Asked:
    request = whole.enter(SEQUENCE)
    whole.end()
    info = request.enter(SEQUENCE)
    request.enter(SEQUENCE)  # the signature's algorithm: the API server has checked the signature
    request.take(BIT_STRING)
    request.end()
    if info.take(INTEGER) != b"\0":
        raise DerError("its version is unknown")
    common_name, organizations = _subject(info.enter(SEQUENCE))
    info.enter(SEQUENCE)  # the public key
    attributes = info.enter(_ATTRIBUTES)
    info.end()
    if attributes.is_at_end:
        return Asked(common_name, organizations)
    dns, addresses = _alternative_names(_only_extension(attributes))
    return Asked(common_name, organizations, dns, addresses)


def _subject(name: Reader) -> tuple[str, tuple[str, ...]]:
    found: dict[bytes, list[str]] = {_COMMON_NAME: [], _ORGANIZATION: []}
    while not name.is_at_end:
        parts = name.enter(SET)
        if parts.is_at_end:
            raise DerError("a part of its subject is empty")
        while not parts.is_at_end:
            attribute = parts.enter(SEQUENCE)
            values = found.get(attribute.take(OID))
            if values is None:
                raise DerError("its subject has more than CN and O")
            values.append(_text(attribute))
            attribute.end()
    if len(found[_COMMON_NAME]) != 1:
        raise DerError("its subject has not exactly one CN")
    return found[_COMMON_NAME][0], tuple(found[_ORGANIZATION])


def _text(attribute: Reader) -> str:
    if attribute.next_tag() == UTF8_STRING:
        try:
            text = attribute.take(UTF8_STRING).decode()
        except UnicodeDecodeError:
            raise DerError("a text in it is not UTF-8") from None
    else:
        content = attribute.take(PRINTABLE_STRING)
        if not _PRINTABLE.fullmatch(content):
            raise DerError("a text in it has characters it may not have")
        text = content.decode("ascii")
    if not text.isprintable() or not text:
        raise DerError("a text in it is empty, or cannot be shown")
    return text


def _only_extension(attributes: Reader) -> Reader:
    """The names in the one extension there may be."""
    attribute = attributes.enter(SEQUENCE)
    attributes.end()
    if attribute.take(OID) != _EXTENSION_REQUEST:
        raise DerError("it has an attribute no kubelet sends")
    values = attribute.enter(SET)
    attribute.end()
    extensions = values.enter(SEQUENCE)
    values.end()
    extension = extensions.enter(SEQUENCE)
    extensions.end()
    if extension.take(OID) != _ALTERNATIVE_NAMES:
        raise DerError("it asks for an extension no kubelet asks for")
    names = extension.enter(OCTET_STRING)
    extension.end()
    return names


def _alternative_names(content: Reader) -> tuple[tuple[str, ...], tuple[IPAddress, ...]]:
    names = content.enter(SEQUENCE)
    content.end()
    dns: list[str] = []
    addresses: list[IPAddress] = []
    while not names.is_at_end:
        match names.next_tag():
            case 0x82:
                name = names.take(_DNS_NAME)
                if not _DNS_CHARACTERS.fullmatch(name):
                    raise DerError("a DNS name in it is none")
                dns.append(name.decode("ascii"))
            case 0x87:
                address = names.take(_ADDRESS)
                if len(address) not in (4, 16):
                    raise DerError("an address in it is none")
                addresses.append(ipaddress.ip_address(address))
            case _:
                raise DerError("it has names other than DNS names and addresses")
    if not dns and not addresses:
        raise DerError("its list of names is empty")
    return tuple(dns), tuple(addresses)
