"""Keys and certificates: how they are made, stored and judged. Which ones there are is in `certificates`.

Validity starts a little in the past, as the cluster's own signer does it, because no two clocks agree; it
never reaches beyond the signer's. A certificate is renewed when less than a third of its life is left: of a
one-day certificate that is eight hours, time enough for an installation that starts at the last moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from falsework.assets.subject import Subject as Subject
from falsework.site.model import IPAddress, KeyAlgorithm

BACKDATED = timedelta(minutes=5)
RENEWED_BELOW = 1 / 3
"""The part of its life that must be left, or a certificate is issued again."""

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Validity(Enum):
    """How long a certificate lives, in days."""

    DAY = 1
    MONTH = 30
    TWO_MONTHS = 60
    YEAR = 365
    TWO_YEARS = 2 * 365
    THREE_YEARS = 3 * 365
    FIVE_YEARS = 5 * 365
    TEN_YEARS = 3650

    @property
    def span(self) -> timedelta:
        return timedelta(days=self.value)


class Use(Enum):
    """What a leaf may be shown for."""

    SERVER = "server"
    CLIENT = "client"


_OIDS = {Use.SERVER: ExtendedKeyUsageOID.SERVER_AUTH, Use.CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True)
class Life:
    """From when to when something is good."""

    begins: datetime
    ends: datetime

    @property
    def renew_at(self) -> datetime:
        return self.ends - (self.ends - self.begins) * RENEWED_BELOW


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: PrivateKey

    @property
    def life(self) -> Life:
        return life_of(self.certificate)


def new_key(algorithm: KeyAlgorithm) -> PrivateKey:
    if algorithm is KeyAlgorithm.RSA:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def issue(
    subject: Subject,
    validity: Validity,
    now: datetime,
    *,
    algorithm: KeyAlgorithm = KeyAlgorithm.ECDSA,
    signer: Pair | None = None,
    uses: frozenset[Use] = frozenset(),
    dns: Iterable[str] = (),
    addresses: Iterable[IPAddress] = (),
) -> Pair:
    """A new key with a certificate for it: a leaf if it has `uses`, else a signer. Without `signer` it signs itself."""
    key = new_key(algorithm)
    public = key.public_key()
    name = _x509_name(subject)
    life = _life(validity, now.replace(microsecond=0), signer)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(signer.certificate.subject if signer else name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(life.begins)
        .not_valid_after(life.ends)
        .add_extension(_key_usage(authority=not uses, encipher=algorithm is KeyAlgorithm.RSA), critical=True)
        .add_extension(x509.BasicConstraints(ca=not uses, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(_authority(signer.certificate if signer else None, public), critical=False)
    )
    if uses:
        oids = [_OIDS[use] for use in Use if use in uses]
        builder = builder.add_extension(x509.ExtendedKeyUsage(oids), critical=False)
    names = [*map(x509.DNSName, dns), *map(x509.IPAddress, addresses)]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Pair(builder.sign(signer.key if signer else key, hashes.SHA256()), key)


def _life(validity: Validity, now: datetime, signer: Pair | None) -> Life:
    life = Life(now - BACKDATED, now + validity.span)
    if signer is None:
        return life
    return Life(max(life.begins, signer.life.begins), min(life.ends, signer.life.ends))


def _x509_name(subject: Subject) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in subject.organizations),
            *((x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, subject.unit),) if subject.unit else ()),
            x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name),
        ]
    )


def _key_usage(*, authority: bool, encipher: bool) -> x509.KeyUsage:
    """An elliptic-curve key cannot encipher keys, and RFC 8813 forbids saying that it may."""
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=encipher,
        key_cert_sign=authority,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority(
    signer: x509.Certificate | None, own: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
) -> x509.AuthorityKeyIdentifier:
    if signer is None:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(own)
    identifier = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


# As files


def certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def load_certificates(pem: bytes) -> list[x509.Certificate]:
    """All certificates in a file; ValueError if it holds none."""
    return x509.load_pem_x509_certificates(pem)


def load_pair(certificate: bytes, key: bytes) -> Pair:
    """ValueError if either cannot be read or they do not belong together."""
    first = load_certificates(certificate)[0]
    private = load_key(key)
    if first.public_key() != private.public_key():
        raise ValueError("the certificate is not for this private key")
    return Pair(first, private)


def load_key(pem: bytes) -> PrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, PrivateKey):
        raise ValueError("the private key is neither ECDSA nor RSA")
    return key


def new_ssh_key(comment: str) -> tuple[bytes, bytes]:
    """Private and public key in OpenSSH's own formats."""
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private, public + b" " + comment.encode() + b"\n"


# As seen by others


def life_of(certificate: x509.Certificate) -> Life:
    return Life(certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def subject_of(certificate: x509.Certificate) -> Subject:
    return _subject(certificate.subject)


def issuer_of(certificate: x509.Certificate) -> Subject:
    return _subject(certificate.issuer)


def _subject(name: x509.Name) -> Subject:
    def values(oid: x509.ObjectIdentifier) -> tuple[str, ...]:
        return tuple(str(attribute.value) for attribute in name.get_attributes_for_oid(oid))

    return Subject(
        next(iter(values(NameOID.COMMON_NAME)), ""),
        values(NameOID.ORGANIZATION_NAME),
        next(iter(values(NameOID.ORGANIZATIONAL_UNIT_NAME)), None),
    )


def is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def is_signed_by(certificate: x509.Certificate, signer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def utc_now() -> datetime:
    return datetime.now(UTC)
