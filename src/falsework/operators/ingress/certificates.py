"""The ingress authority and the certificate for all names of the domain.

Imports `cryptography`, which is large: to be imported when something is to be judged.
"""

from __future__ import annotations

from datetime import datetime

from cryptography import x509

from falsework.assets.pki import (
    Pair,
    Subject,
    Use,
    Validity,
    certificate_pem,
    is_signed_by,
    issue,
    subject_of,
)
from falsework.operators.certificates.renewal import Files, due, files_of, lasting, pair_in, pair_or_none, readable
from falsework.site.model import KeyAlgorithm

_AUTHORITY = "ingress-operator@"
"""How the name of each begins; then comes when it was made."""


def authority(old: Files, now: datetime) -> tuple[Files, float]:
    """As OpenShift makes it; and the seconds until it has to be looked at again."""
    pair = pair_or_none(old)
    if pair is not None and (wait := due(pair, now)):
        return old, wait.total_seconds()
    subject = Subject(f"{_AUTHORITY}{int(now.timestamp())}")
    made = issue(subject, Validity.TWO_YEARS, now, algorithm=KeyAlgorithm.RSA)
    return files_of(made), due(made, now).total_seconds()


def wildcard(old: Files, signer: Files, domain: str, now: datetime) -> tuple[Files, float]:
    """For `*.domain`. The authority is shown with it, for those who trust that by what they saw once."""
    by, pair, name = pair_in(signer), pair_or_none(old), f"*.{domain}"
    is_good = pair is not None and is_signed_by(pair.certificate, by.certificate) and name in _names(pair)
    if pair is not None and is_good and (wait := due(pair, now)):
        return old, wait.total_seconds()
    made = issue(
        Subject(name),
        Validity.TWO_YEARS,
        now,
        algorithm=KeyAlgorithm.RSA,
        signer=by,
        uses=frozenset({Use.SERVER}),
        dns=[name],
    )
    files = files_of(made)
    return {**files, "tls.crt": files["tls.crt"] + certificate_pem(by.certificate)}, due(made, now).total_seconds()


def trusted(before: str, signer: Files, named: Files, now: datetime) -> str:
    """All authorities there were, until they end; and what somebody else made as long as it is shown, not longer: it
    may have been replaced because its key is known."""
    own = [one for one in readable(before.encode()) if subject_of(one).common_name.startswith(_AUTHORITY)]
    known = [*own, *readable(signer["tls.crt"]), *readable(named.get("tls.crt", b""))]
    return b"".join(map(certificate_pem, lasting(known, now))).decode()


def _names(pair: Pair) -> list[str]:
    try:
        found = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return found.get_values_for_type(x509.DNSName)
