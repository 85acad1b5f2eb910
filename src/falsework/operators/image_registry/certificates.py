"""The registry's certificate, and the signer it is from, which only those who pull and push trust.

Imports `cryptography`, which is large: to be imported when there is a registry.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime

from cryptography import x509

from falsework.assets.pki import (
    Pair,
    Subject,
    Use,
    Validity,
    is_signed_by,
    issue,
    load_certificates,
)
from falsework.operators.certificates.renewal import Files, due, files_of, pair_in, pair_or_none
from falsework.operators.image_registry.names import SERVICE, SERVICE_NAMES


def signer(old: Files, now: datetime) -> Files:
    """Renewed when a third of its three years is left, so that what it signs can always last a year."""
    pair = pair_or_none(old)
    if pair is not None and due(pair, now):
        return old
    return files_of(issue(Subject(f"{SERVICE}-signer@{int(now.timestamp())}"), Validity.THREE_YEARS, now))


def serving(old: Files, signer: Files, bundle: str, addresses: tuple[str, ...], now: datetime, *, known: bool) -> Files:
    """For all the Service's names and addresses. Renewed in time by the newest signer, but not before that one is
    known to all nodes (`known`), unless nobody could trust the old one any more."""
    by = pair_in(signer)
    pair = pair_or_none(old)
    if pair is not None and _serves(pair, bundle, addresses, now) and (due(pair, now) or not known):
        return old
    names = [ipaddress.ip_address(address) for address in addresses]
    uses = frozenset({Use.SERVER})
    return files_of(
        issue(Subject(SERVICE), Validity.YEAR, now, signer=by, uses=uses, dns=SERVICE_NAMES, addresses=names)
    )


def _serves(pair: Pair, bundle: str, addresses: tuple[str, ...], now: datetime) -> bool:
    trusted = load_certificates(bundle.encode())
    if pair.life.ends <= now or not any(is_signed_by(pair.certificate, one) for one in trusted):
        return False
    names = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    has = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    return {*SERVICE_NAMES, *addresses} <= has
