"""What another implementation says about the certificates: openssl verifies chains, names, uses and dates."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from falsework.assets.catalogue import create
from falsework.assets.certificates import ISSUED_AT, Row, rows
from falsework.assets.pki import BACKDATED, Use
from falsework.site.load import default_site
from falsework.site.model import KeyAlgorithm, Site

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")

NOW = datetime.now(UTC).replace(microsecond=0)
SITE = default_site()
ROWS = {row.name: row for row in rows(SITE)}
USES = {Use.SERVER: "TLS Web Server Authentication", Use.CLIENT: "TLS Web Client Authentication"}


def openssl(*arguments: str | Path) -> str:
    result = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("ecdsa"), SITE)


def made(folder: Path, site: Site) -> Path:
    create(site, folder, clock=lambda: NOW)
    return folder


def text_of(folder: Path, row: Row) -> str:
    return openssl("x509", "-in", folder / row.certificate_path, "-noout", "-text", "-nameopt", "RFC2253")


@pytest.mark.parametrize("name", ROWS)
def test_chain(folder: Path, name: str) -> None:
    row = ROWS[name]
    signer = ROWS[row.signer] if row.signer else row
    purposes = {Use.SERVER: "sslserver", Use.CLIENT: "sslclient"}
    for purpose in [purposes[use] for use in row.uses] or ["any"]:
        openssl(
            "verify",
            "-x509_strict",
            "-purpose",
            purpose,
            "-CAfile",
            folder / signer.certificate_path,
            folder / row.certificate_path,
        )


@pytest.mark.parametrize("name", ROWS)
def test_contents(folder: Path, name: str) -> None:
    row = ROWS[name]
    text = text_of(folder, row)
    stamp = str(int(NOW.timestamp()))
    subject = [f"CN={row.subject.common_name.replace(ISSUED_AT, stamp)}"]
    subject += [f"OU={row.subject.unit}"] if row.subject.unit else []
    subject += [f"O={name}" for name in reversed(row.subject.organizations)]
    assert f"Subject: {','.join(subject)}\n" in text
    assert ("CA:TRUE" in text) is not bool(row.uses)
    assert ("Certificate Sign" in text) is not bool(row.uses)
    assert set(_after(text, "X509v3 Extended Key Usage:")) == {USES[use] for use in row.uses}
    names = {f"DNS:{dns}" for dns in row.dns} | {
        f"IP Address:{'0:0:0:0:0:0:0:1' if str(address) == '::1' else address}" for address in row.addresses
    }
    assert set(_after(text, "X509v3 Subject Alternative Name:")) == names
    assert "ASN1 OID: prime256v1" in text
    assert _date(text, "Not Before") == NOW - BACKDATED
    assert _date(text, "Not After ") == NOW + timedelta(days=row.validity.value)


@pytest.mark.parametrize("name", ROWS)
def test_key_belongs_to_its_certificate(folder: Path, name: str) -> None:
    row = ROWS[name]
    from_key = openssl("pkey", "-in", folder / row.key_path, "-pubout")
    from_certificate = openssl("x509", "-in", folder / row.certificate_path, "-noout", "-pubkey")
    assert from_key == from_certificate


def test_servers_that_show_their_chain_have_it_in_the_file(folder: Path) -> None:
    for row in (row for row in ROWS.values() if row.with_chain):
        assert (folder / row.certificate_path).read_text().count("BEGIN CERTIFICATE") == 2


def test_rsa_site(tmp_path: Path) -> None:
    made(tmp_path, dataclasses.replace(SITE, key_algorithm=KeyAlgorithm.RSA))
    for name in ("root-ca", "machine-config-server", "join/worker-0"):
        text = text_of(tmp_path, ROWS[name])
        assert "Public-Key: (2048 bit)" in text
        assert "Key Encipherment" in text
    openssl(
        "verify", "-x509_strict", "-CAfile", tmp_path / "tls/root-ca.crt", tmp_path / "tls/machine-config-server.crt"
    )


def _after(text: str, heading: str) -> list[str]:
    found = re.search(rf"{re.escape(heading)} *\n +(.*)\n", text)
    return found.group(1).strip().split(", ") if found else []


def _date(text: str, heading: str) -> datetime:
    found = re.search(rf"{heading} *: (.*) GMT", text)
    assert found is not None
    return datetime.strptime(found.group(1), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
