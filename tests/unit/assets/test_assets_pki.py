"""Keys, certificates and the table of them."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from asset_samples import START, sample_site
from cryptography.hazmat.primitives.asymmetric import rsa

from falsework.assets.certificates import BUNDLES, OnBootstrap, Row, rows
from falsework.assets.pki import (
    BACKDATED,
    Subject,
    Use,
    Validity,
    certificate_pem,
    is_authority,
    is_signed_by,
    issue,
    key_pem,
    load_pair,
    subject_of,
)
from falsework.site.model import KeyAlgorithm

ROWS = {row.name: row for row in rows(sample_site())}


def test_every_row_comes_after_its_signer_and_names_are_unique() -> None:
    seen: set[str] = set()
    for row in rows(sample_site()):
        assert row.signer is None or row.signer in seen, row.name
        assert row.name not in seen
        seen.add(row.name)
    assert {signer for bundle in BUNDLES for signer in bundle.signers} <= seen


def test_rows_without_uses_are_exactly_the_signers() -> None:
    signers = {row.signer for row in ROWS.values() if row.signer} | {"kubelet-signer"}  # which signs in the cluster
    assert signers == {row.name for row in ROWS.values() if not row.uses}


@pytest.mark.parametrize(
    ("names", "validity"),
    [
        (
            ("kubelet-signer", "aggregator-signer", "aggregator-client", "aggregator-ca", "apiserver-proxy"),
            Validity.DAY,
        ),
        (("kube-apiserver-lb-server", "kube-apiserver-internal-lb-server"), Validity.DAY),
        (("kube-apiserver-localhost-server", "kube-apiserver-service-network-server"), Validity.DAY),
        (("join/master-0", "join/worker-1"), Validity.DAY),
        (("kube-apiserver-to-kubelet-signer", "kube-apiserver-to-kubelet-client"), Validity.YEAR),
        (("kube-control-plane-signer", "kube-control-plane-kube-scheduler-client"), Validity.YEAR),
        (("etcd-client", "etcd-all-certs/etcd-peer-master-1.lab.falsework.test"), Validity.THREE_YEARS),
        (("etcd-signer", "etcd-metric-signer"), Validity.FIVE_YEARS),
        (("root-ca", "machine-config-server", "journal-gatewayd", "admin-kubeconfig-client"), Validity.TEN_YEARS),
    ],
)
def test_validity_classes(names: tuple[str, ...], validity: Validity) -> None:
    assert {ROWS[name].validity for name in names} == {validity}


def test_signers_that_only_sign_here_keep_their_keys_here() -> None:
    kept = {row.name for row in ROWS.values() if not row.uses and row.on_bootstrap is not OnBootstrap.PAIR}
    assert kept == {"root-ca", "admin-kubeconfig-signer", "kubelet-bootstrap-kubeconfig-signer"}


def test_machines_credentials_go_to_that_machine_alone() -> None:
    for machine in (*sample_site().masters, *sample_site().workers):
        assert ROWS[f"join/{machine.name}"].goes_to == (f"{machine.name}:/etc/kubernetes/kubeconfig",)


def test_etcd_members_have_leaves_for_bootstrap_and_masters_only() -> None:
    members = [name.removeprefix("etcd-all-certs/") for name in ROWS if name.startswith("etcd-all-certs/etcd-peer-")]
    assert members == [
        f"etcd-peer-{name}.lab.falsework.test" for name in ("bootstrap", "master-0", "master-1", "master-2")
    ]
    row = ROWS["etcd-all-certs/etcd-serving-master-0.lab.falsework.test"]
    assert row.subject.common_name == "192.168.126.101"
    assert row.uses == {Use.SERVER, Use.CLIENT}
    assert [str(address) for address in row.addresses] == ["192.168.126.101", "127.0.0.1", "::1"]


def test_validity_starts_a_little_early_and_never_outlives_the_signer() -> None:
    signer = issue(Subject("signer"), Validity.YEAR, START)
    assert signer.life.begins == START - BACKDATED
    assert signer.life.ends == START + timedelta(days=365)
    leaf = issue(Subject("leaf"), Validity.TEN_YEARS, START + timedelta(days=100), signer=signer, uses=frozenset(Use))
    assert leaf.life.ends == signer.life.ends
    assert leaf.life.begins == START + timedelta(days=100) - BACKDATED


def test_a_third_of_its_life_before_the_end_a_certificate_is_renewed() -> None:
    life = issue(Subject("x"), Validity.DAY, START).life
    assert timedelta(hours=8) <= life.ends - life.renew_at <= timedelta(hours=8, minutes=2)


def test_serials_are_random() -> None:
    signer = issue(Subject("signer"), Validity.DAY, START)
    issued = [issue(Subject("x"), Validity.DAY, START, signer=signer, uses=frozenset(Use)) for _ in range(20)]
    assert len({pair.certificate.serial_number for pair in issued}) == 20


def test_rsa_can_be_chosen() -> None:
    pair = issue(Subject("x"), Validity.DAY, START, algorithm=KeyAlgorithm.RSA)
    assert isinstance(pair.key, rsa.RSAPrivateKey)
    assert pair.key.key_size == 2048


def test_a_pair_that_does_not_match_is_refused() -> None:
    one, two = (issue(Subject(name), Validity.DAY, START) for name in "ab")
    assert load_pair(certificate_pem(one.certificate), key_pem(one.key)).certificate == one.certificate
    with pytest.raises(ValueError, match="not for this private key"):
        load_pair(certificate_pem(one.certificate), key_pem(two.key))
    assert is_authority(one.certificate)
    assert is_signed_by(one.certificate, one.certificate)
    assert not is_signed_by(one.certificate, two.certificate)


def test_a_subject_survives_the_way_through_a_certificate() -> None:
    subject = Subject("system:join:a", ("system:bootstrappers", "other"), "unit")
    assert subject_of(issue(subject, Validity.DAY, START).certificate) == subject


def test_rows_are_what_the_site_says() -> None:
    site = dataclasses.replace(sample_site(), cluster_name="other")
    differing = {
        row.name for row, other in zip(rows(sample_site()), rows(site), strict=True) if _names(row) != _names(other)
    }
    assert {"kube-apiserver-lb-server", "kube-apiserver-internal-lb-server", "machine-config-server"} <= differing
    assert "kube-apiserver-service-network-server" not in differing


def _names(row: Row) -> tuple[object, ...]:
    return row.subject, row.dns, row.addresses
