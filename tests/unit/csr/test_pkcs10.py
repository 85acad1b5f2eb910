"""Reading certificate requests: what kubelets write is read right, all else is refused, whatever it is."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import AttributeOID, NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.csr.pkcs10 import SIZE_LIMIT, Asked, NotUnderstoodError, read_request

KEY = ec.generate_private_key(ec.SECP256R1())
NODE = "system:node:master-0.lab.falsework.test"


def built(
    names: Sequence[tuple[x509.ObjectIdentifier, str]],
    extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
    attributes: Sequence[tuple[x509.ObjectIdentifier, bytes]] = (),
) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(oid, value) for oid, value in names])
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    for oid, value in attributes:
        builder = builder.add_attribute(oid, value)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def alternative(*names: x509.GeneralName) -> tuple[x509.ExtensionType, bool]:
    return x509.SubjectAlternativeName(names), False


PLAIN = ((NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, NODE))
GOOD = built(PLAIN)
SERVING = built(
    PLAIN, [alternative(x509.DNSName("master-0.lab.falsework.test"), x509.IPAddress(ip_address("192.168.126.101")))]
)


def test_a_client_request() -> None:
    assert read_request(GOOD) == Asked(NODE, ("system:nodes",))


def test_a_serving_request() -> None:
    asked = read_request(SERVING)
    assert asked.dns == ("master-0.lab.falsework.test",)
    assert asked.addresses == (ip_address("192.168.126.101"),)


STRANGE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not one PEM block"),
    "text before it": (b"x\n" + GOOD, "not one PEM block"),
    "text after it": (GOOD + b"x", "not one PEM block"),
    "two": (GOOD + GOOD, "not one PEM block"),
    "a header": (GOOD.replace(b"REQUEST-----\n", b"REQUEST-----\nA: b\n\n", 1), "not one PEM block"),
    "another kind of block": (GOOD.replace(b"CERTIFICATE REQUEST", b"CERTIFICATE"), "not one PEM block"),
    "carriage returns": (GOOD.replace(b"\n", b"\r\n"), "not one PEM block"),
    "too large": (b"A" * (SIZE_LIMIT + 1), "too large"),
    "no CN": (built(PLAIN[:1]), "exactly one CN"),
    "two CNs": (built([*PLAIN, (NameOID.COMMON_NAME, "other")]), "exactly one CN"),
    "a country": (built([*PLAIN, (NameOID.COUNTRY_NAME, "DE")]), "more than CN and O"),
    "a mail address": (built(PLAIN, [alternative(x509.RFC822Name("a@b.example"))]), "names other than"),
    "a URI": (built(PLAIN, [alternative(x509.UniformResourceIdentifier("https://a.example"))]), "names other than"),
    "a directory name": (
        built(PLAIN, [alternative(x509.DirectoryName(x509.Name([x509.NameAttribute(*PLAIN[1])])))]),
        "names other than",
    ),
    "another extension": (
        built(PLAIN, [(x509.BasicConstraints(ca=True, path_length=None), True)]),
        "no kubelet asks for",
    ),
    "two extensions": (
        built(PLAIN, [alternative(x509.DNSName("a")), (x509.BasicConstraints(ca=True, path_length=None), True)]),
        "something follows",
    ),
    "critical names": (built(PLAIN, [(x509.SubjectAlternativeName([x509.DNSName("a")]), True)]), "of another kind"),
    "a password": (built(PLAIN, attributes=[(AttributeOID.CHALLENGE_PASSWORD, b"x")]), "an attribute no kubelet"),
    "a control character": (built([(NameOID.COMMON_NAME, "a\x1bb")]), "cannot be shown"),
    "a zero byte": (built([(NameOID.COMMON_NAME, f"{NODE}\0")]), "cannot be shown"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_what_no_kubelet_writes_is_refused(case: str) -> None:
    content, why = STRANGE[case]
    with pytest.raises(NotUnderstoodError, match=why):
        read_request(content)


def der_of(pem: bytes) -> bytes:
    return base64.b64decode(b"".join(pem.splitlines()[1:-1]))


def pem_of_der(der: bytes) -> bytes:
    body = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + body + b"-----END CERTIFICATE REQUEST-----\n"


def read_or_none(pem: bytes) -> Asked | None:
    """Never anything but an answer or a refusal."""
    try:
        return read_request(pem)
    except NotUnderstoodError:
        return None


def test_the_form_of_the_tests_is_right() -> None:
    assert read_request(pem_of_der(der_of(SERVING))) == read_request(SERVING)


@settings(deadline=None)
@given(st.binary(max_size=500))
def test_random_bytes(content: bytes) -> None:
    assert read_or_none(content) is None
    read_or_none(pem_of_der(content))


@pytest.mark.parametrize("pem", [GOOD, SERVING])
def test_every_truncation_and_every_extension_is_refused(pem: bytes) -> None:
    der = der_of(pem)
    for length in range(len(der)):
        assert read_or_none(pem_of_der(der[:length])) is None
    assert read_or_none(pem_of_der(der + b"\0")) is None


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([GOOD, SERVING]), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3))
def test_a_mutated_request_means_the_same_to_others(pem: bytes, changes: list[tuple[int, int]]) -> None:
    """Where both we and a full parser understand it, we understand the same."""
    der = bytearray(der_of(pem))
    for place, value in changes:
        der[place % len(der)] = value
    asked = read_or_none(pem_of_der(bytes(der)))
    if asked is None:
        return
    try:
        other = x509.load_der_x509_csr(bytes(der))
        names = [attribute.value for attribute in other.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        organizations = [
            attribute.value for attribute in other.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        ]
        extensions = list(other.extensions)
    except (ValueError, TypeError):
        return
    assert [asked.common_name] == names
    assert list(asked.organizations) == organizations
    assert len(extensions) <= 1
    for extension in extensions:
        assert isinstance(extension.value, x509.SubjectAlternativeName)
        assert list(asked.dns) == extension.value.get_values_for_type(x509.DNSName)
        assert list(asked.addresses) == extension.value.get_values_for_type(x509.IPAddress)


@settings(max_examples=50, deadline=None)
@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1, max_size=32),
    st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=64), max_size=3),
)
def test_names_are_read_as_they_were_written(name: str, organizations: list[str]) -> None:
    asked = read_or_none(
        built([*((NameOID.ORGANIZATION_NAME, entry) for entry in organizations), (NameOID.COMMON_NAME, name)])
    )
    if name.isprintable():
        assert asked == Asked(name, tuple(organizations))
    else:
        assert asked is None


@pytest.mark.parametrize(
    ("der", "why"),
    [
        (b"\x30\x80\x00\x00", "a length cannot be read"),
        (b"\x30\x81\x05" + b"\0" * 5, "longer than it need be"),
        (b"\x30\x82\x00\x90" + b"\0" * 0x90, "longer than it need be"),
        (b"\x30\x84\x00\x00\x00\x01\x00", "a length cannot be read"),
        (b"\x30\x05\x00", "longer than what holds it"),
        (b"\x30", "ends too early"),
        (b"\x31\x00", "of another kind"),
    ],
)
def test_only_der_is_read(der: bytes, why: str) -> None:
    with pytest.raises(NotUnderstoodError, match=why):
        read_request(pem_of_der(der))
