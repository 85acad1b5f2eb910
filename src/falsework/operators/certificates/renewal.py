"""Certificates judged and made again. A new one is what the old one was, but for its key and its time.

Imports `cryptography`, which is large: to be imported when something is to be judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from falsework.assets.pki import (
    Pair,
    PrivateKey,
    Subject,
    Use,
    Validity,
    certificate_pem,
    is_signed_by,
    issue,
    key_pem,
    life_of,
    load_certificates,
    load_pair,
    subject_of,
)
from falsework.site.model import IPAddress, KeyAlgorithm

_USES = {ExtendedKeyUsageOID.SERVER_AUTH: Use.SERVER, ExtendedKeyUsageOID.CLIENT_AUTH: Use.CLIENT}

Files = dict[str, bytes]
"""The data of a Secret: tls.crt and tls.key."""


def pair_in(files: Files) -> Pair:
    """ValueError or KeyError if it is none."""
    return load_pair(files["tls.crt"], files["tls.key"])


def pair_or_none(files: Files) -> Pair | None:
    """None if it is none: then another one is made."""
    try:
        return pair_in(files)
    except (KeyError, ValueError):
        return None


def files_of(pair: Pair) -> Files:
    return {"tls.crt": certificate_pem(pair.certificate), "tls.key": key_pem(pair.key)}


def due(pair: Pair, now: datetime) -> timedelta:
    """How long it may wait until it is made again."""
    return max(timedelta(), pair.life.renew_at - now)


def renewal_reason(leaf: Pair, signer: Pair, now: datetime) -> str:
    """Why it has to be made again; empty if it is good, or if a new one would last no longer."""
    if not is_signed_by(leaf.certificate, signer.certificate):
        return "another signer has taken over"
    if due(leaf, now) or signer.life.ends <= leaf.life.ends:
        return ""
    return f"it ends at {leaf.life.ends:%Y-%m-%d %H:%M} UTC"


def renewed_leaf(old: Files, signer: Pair, now: datetime) -> Files:
    shown = load_certificates(old["tls.crt"])
    dns, addresses = _names(shown[0])
    pair = issue(
        subject_of(shown[0]),
        Validity.MONTH,
        now,
        algorithm=_algorithm(signer.key),
        signer=signer,
        uses=_uses(shown[0]),
        dns=dns,
        addresses=addresses,
    )
    # A server that showed its signer too goes on doing so.
    behind = certificate_pem(signer.certificate) if len(shown) > 1 else b""
    return {"tls.crt": certificate_pem(pair.certificate) + behind, "tls.key": key_pem(pair.key)}


def successor_of(signer: Pair, now: datetime) -> Files:
    """Its name says when it was made, so that people can tell the two apart."""
    old = subject_of(signer.certificate)
    name = f"{old.common_name.partition('@')[0]}@{int(now.timestamp())}"
    pair = issue(Subject(name, old.organizations, old.unit), Validity.TWO_MONTHS, now, algorithm=_algorithm(signer.key))
    return files_of(pair)


def readable(pem: bytes) -> list[x509.Certificate]:
    """None, if somebody has put something else there."""
    try:
        return load_certificates(pem)
    except ValueError:
        return []


def lasting(known: Iterable[x509.Certificate], now: datetime) -> list[x509.Certificate]:
    """Each of them once, without those that have ended."""
    return list(dict.fromkeys(one for one in known if life_of(one).ends > now))


def merged(bundle: str, wanted: Iterable[bytes], now: datetime) -> str:
    """The bundle with all certificates of `wanted`, and without those that have ended. One that is right already stays
    as it is, to the letter: a change would be a new revision."""
    old = readable(bundle.encode())
    known = chain(old, chain.from_iterable(map(load_certificates, wanted)))
    new = lasting(known, now)
    return bundle if new == old else b"".join(map(certificate_pem, new)).decode()


def holds(bundle: str, certificate: bytes) -> bool:
    return load_certificates(certificate)[0] in load_certificates(bundle.encode())


def _algorithm(key: PrivateKey) -> KeyAlgorithm:
    return KeyAlgorithm.RSA if isinstance(key, rsa.RSAPrivateKey) else KeyAlgorithm.ECDSA


def _uses(certificate: x509.Certificate) -> frozenset[Use]:
    found = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return frozenset(_USES[entry] for entry in found if entry in _USES)


def _names(certificate: x509.Certificate) -> tuple[list[str], list[IPAddress]]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [], []
    addresses = names.get_values_for_type(x509.IPAddress)
    return names.get_values_for_type(x509.DNSName), [one for one in addresses if isinstance(one, IPAddress)]
