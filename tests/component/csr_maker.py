"""Certificate requests as kubelets make them, and as they do not."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Sequence
from functools import cache
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from falsework.kube.client import Client, Object
from falsework.kube.resources import CSRS

CLIENT_USAGES = ("digital signature", "client auth")
SERVING_USAGES = ("digital signature", "server auth")
_numbers = itertools.count()


@cache
def shared_key() -> ec.EllipticCurvePrivateKey:
    """Making keys is not what is tested."""
    return ec.generate_private_key(ec.SECP256R1())


def request_pem(
    common_name: str,
    organizations: Sequence[str] = ("system:nodes",),
    dns: Sequence[str] = (),
    addresses: Sequence[str] = (),
    *,
    extensions: Sequence[x509.ExtensionType] = (),
) -> bytes:
    names = [
        *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations),
        x509.NameAttribute(NameOID.COMMON_NAME, common_name),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    if dns or addresses:
        alternative = [*map(x509.DNSName, dns), *(x509.IPAddress(ip_address(address)) for address in addresses)]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(shared_key(), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def csr(pem: bytes, signer: str, usages: Sequence[str], name: str = "") -> Object:
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name or f"csr-{next(_numbers)}"},
        "spec": {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(usages)},
    }


def submit(client: Client, pem: bytes, signer: str, usages: Sequence[str], name: str = "") -> str:
    made = client.create(CSRS, csr(pem, signer, usages, name))
    return str(made["metadata"]["name"])
