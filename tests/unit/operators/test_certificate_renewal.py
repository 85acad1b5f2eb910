"""When a certificate is made again, and what the new one has of the old one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

import pytest

from falsework.assets.pki import (
    Pair,
    Subject,
    Use,
    Validity,
    certificate_pem,
    is_authority,
    is_signed_by,
    issue,
    key_pem,
    load_certificates,
    subject_of,
)
from falsework.operators.certificates import renewal
from falsework.operators.certificates.renewal import Files
from falsework.operators.kube_apiserver import certificates
from falsework.operators.kube_apiserver.pod import CONFIG_MAPS, NAMESPACE, SECRETS
from falsework.site.model import KeyAlgorithm

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def signer(validity: Validity = Validity.TEN_YEARS) -> Pair:
    return issue(Subject("signer", unit="openshift"), validity, BEGIN)


def server(by: Pair) -> tuple[Pair, Files]:
    pair = issue(
        Subject("system:kube-apiserver", ("kube-master",)),
        Validity.DAY,
        BEGIN,
        signer=by,
        uses=frozenset({Use.SERVER}),
        dns=("localhost",),
        addresses=(IPv4Address("127.0.0.1"),),
    )
    chain = certificate_pem(pair.certificate) + certificate_pem(by.certificate)
    return pair, {"tls.crt": chain, "tls.key": key_pem(pair.key)}


def test_a_day_is_renewed_after_two_thirds_of_it() -> None:
    by = signer()
    pair, _ = server(by)
    assert not renewal.renewal_reason(pair, by, BEGIN + 15 * HOUR)
    assert "it ends at 2030-01-02" in renewal.renewal_reason(pair, by, BEGIN + 17 * HOUR)
    assert renewal.due(pair, BEGIN + 15 * HOUR) < 2 * HOUR
    assert renewal.due(pair, BEGIN + 30 * HOUR) == timedelta()


def test_another_signer_makes_it_anew_and_a_signer_that_ends_as_soon_does_not() -> None:
    by, other = signer(Validity.DAY), signer()
    pair, _ = server(by)
    assert renewal.renewal_reason(pair, other, BEGIN) == "another signer has taken over"
    assert not renewal.renewal_reason(pair, by, BEGIN + 20 * HOUR)


def test_the_new_one_is_the_old_one_with_another_key_and_time() -> None:
    by, now = signer(), BEGIN + 17 * HOUR
    old, files = server(by)
    made = renewal.renewed_leaf(files, by, now)
    new = renewal.pair_in(made)
    certificate, before = new.certificate, old.certificate
    assert subject_of(certificate) == subject_of(before)
    assert [str(one) for one in certificate.extensions if one.oid.dotted_string in ("2.5.29.17", "2.5.29.37")] == [
        str(one) for one in before.extensions if one.oid.dotted_string in ("2.5.29.17", "2.5.29.37")
    ]
    assert is_signed_by(certificate, by.certificate)
    assert new.life.ends == now + 30 * DAY
    assert made["tls.key"] != files["tls.key"]
    assert load_certificates(made["tls.crt"])[1] == by.certificate


@pytest.mark.parametrize("algorithm", KeyAlgorithm)
def test_a_successor_has_the_name_the_time_and_the_kind_of_key(algorithm: KeyAlgorithm) -> None:
    old = issue(Subject("kubelet-signer", unit="openshift"), Validity.DAY, BEGIN, algorithm=algorithm)
    first = renewal.pair_in(renewal.successor_of(old, BEGIN + DAY))
    assert subject_of(first.certificate) == Subject(
        f"kubelet-signer@{int((BEGIN + DAY).timestamp())}", unit="openshift"
    )
    assert is_authority(first.certificate)
    assert isinstance(first.key, type(old.key))
    second = renewal.pair_in(renewal.successor_of(first, BEGIN + 9 * DAY))
    assert subject_of(second.certificate).common_name == f"kubelet-signer@{int((BEGIN + 9 * DAY).timestamp())}"


def test_a_bundle_grows_keeps_its_order_and_forgets_what_has_ended() -> None:
    short, long = signer(Validity.DAY), signer()
    old = (certificate_pem(short.certificate) + certificate_pem(long.certificate)).decode()
    assert renewal.merged(old, [], BEGIN) == old
    spaced = old.replace("-----END CERTIFICATE-----\n", "-----END CERTIFICATE-----\n\n")
    assert renewal.merged(spaced, [certificate_pem(short.certificate)], BEGIN) == spaced
    assert renewal.merged(old, [certificate_pem(long.certificate)], BEGIN) == old
    added = certificate_pem(signer().certificate)
    assert renewal.merged(old, [added], BEGIN) == old + added.decode()
    assert renewal.merged(old, [], BEGIN + 2 * DAY) == certificate_pem(long.certificate).decode()
    for nothing in ("", "nonsense"):
        assert renewal.merged(nothing, [added], BEGIN) == added.decode()
    assert renewal.holds(old, certificate_pem(long.certificate))
    assert not renewal.holds(old, added)


def test_the_table_is_of_things_that_are_there() -> None:
    table = certificates.TABLE
    assert {leaf.secret.name for leaf in table.leaves if leaf.secret.namespace == NAMESPACE} <= set(SECRETS)
    bundles = {bundle for signer in table.signers for bundle in signer.bundles}
    bundles |= {bundle for followed in table.followed for bundle in followed.bundles}
    assert {bundle.name for bundle in bundles} <= set(CONFIG_MAPS)
    known = {signer.current for signer in table.signers} | set(table.lasting)
    assert {leaf.signer for leaf in table.leaves} == known
