"""Which keys and certificates there are: one table, by the names OpenShift has for them.

A row says everything: who signs, for whom, for how long, for which names, and where the result goes. What
only signs here (for administrators and joining machines) never leaves the asset folder with its key.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv6Address

from falsework.assets import join
from falsework.assets.graph import Asset, Files, Given
from falsework.assets.pki import (
    Life,
    Pair,
    Subject,
    Use,
    Validity,
    certificate_pem,
    is_authority,
    issue,
    key_pem,
    life_of,
    load_certificates,
    load_key,
    load_pair,
    new_key,
    public_pem,
)
from falsework.release.payload import REGISTRY
from falsework.site.model import IPAddress, KeyAlgorithm, Machine, Site

LOOPBACK: tuple[IPAddress, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
SERVER = frozenset({Use.SERVER})
CLIENT = frozenset({Use.CLIENT})
BOTH = frozenset({Use.SERVER, Use.CLIENT})
REGISTRY_ROW = "registry"
"""The helper's image registry."""
ISSUED_AT = "{issued}"
"""In a common name: the time of issue, as etcd's signers carry it."""


class OnBootstrap(Enum):
    """What of a pair the bootstrap machine gets, below /opt/openshift/tls."""

    PAIR = "certificate and key"
    CERTIFICATE = "certificate"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Row:
    name: str
    """Path of its files below tls/, without ending."""
    subject: Subject
    validity: Validity
    signer: str | None = None
    uses: frozenset[Use] = frozenset()
    """Empty for a signer."""
    dns: tuple[str, ...] = ()
    addresses: tuple[IPAddress, ...] = ()
    with_chain: bool = False
    """Whether the signer's certificate follows in the same file, for servers that show both."""
    on_bootstrap: OnBootstrap = OnBootstrap.PAIR
    also_in: tuple[str, ...] = ()
    """Where else it goes, in words."""

    @property
    def asset(self) -> str:
        return f"tls/{self.name}"

    @property
    def certificate_path(self) -> str:
        return f"{self.asset}.crt"

    @property
    def key_path(self) -> str:
        return f"{self.asset}.key"

    @property
    def goes_to(self) -> tuple[str, ...]:
        """Everything that carries it, in words."""
        if self.on_bootstrap is OnBootstrap.NOTHING:
            return self.also_in
        return (f"bootstrap:/opt/openshift/tls ({self.on_bootstrap.value})", *self.also_in)


@dataclass(frozen=True)
class Bundle:
    """Certificates of several signers in one file."""

    name: str
    signers: tuple[str, ...]


def _signer(
    name: str,
    validity: Validity,
    *also_in: str,
    common_name: str | None = None,
    unit: str = "openshift",
    on_bootstrap: OnBootstrap = OnBootstrap.PAIR,
) -> Row:
    subject = Subject(common_name or name, unit=unit)
    return Row(name, subject, validity, on_bootstrap=on_bootstrap, also_in=also_in)


def rows(site: Site) -> tuple[Row, ...]:
    """All certificates of a site, each after its signer."""
    return (*_control_plane(site), *_etcd(site), *_machines(site))


def _control_plane(site: Site) -> tuple[Row, ...]:
    apiserver = Subject("system:kube-apiserver", ("kube-master",))
    lb = Subject("system:kube-apiserver")
    admin = Subject("system:admin", ("system:masters",))
    proxy = Subject("system:kube-apiserver-proxy", ("kube-master",))
    service_names = tuple(
        f"{service}{suffix}"
        for service in ("kubernetes", "openshift")
        for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")
    )
    day, year, ten_years = Validity.DAY, Validity.YEAR, Validity.TEN_YEARS
    server_bundle = "every kubeconfig (trusted)"
    client_bundle = "kube-apiserver (trusted client CA)"
    return (
        _signer(
            "root-ca",
            ten_years,
            "Secret openshift-machine-config-operator/machine-config-server-ca (with key)",
            "ConfigMap kube-system/root-ca",
            "master.ign, worker.ign and machines/*.ign (trusted)",
            "masters and workers:/etc/containerd/certs.d (trusted)",
            on_bootstrap=OnBootstrap.CERTIFICATE,
        ),
        _signer("admin-kubeconfig-signer", ten_years, client_bundle, on_bootstrap=OnBootstrap.CERTIFICATE),
        Row(
            "admin-kubeconfig-client",
            admin,
            ten_years,
            "admin-kubeconfig-signer",
            BOTH,
            on_bootstrap=OnBootstrap.NOTHING,
            also_in=("auth/kubeconfig", "bootstrap:/opt/openshift/auth/kubeconfig and kubeconfig-loopback"),
        ),
        _signer("kube-apiserver-localhost-signer", ten_years, server_bundle),
        Row(
            "kube-apiserver-localhost-server",
            apiserver,
            day,
            "kube-apiserver-localhost-signer",
            SERVER,
            ("localhost",),
            LOOPBACK,
            with_chain=True,
        ),
        _signer("kube-apiserver-service-network-signer", ten_years, server_bundle),
        Row(
            "kube-apiserver-service-network-server",
            apiserver,
            day,
            "kube-apiserver-service-network-signer",
            SERVER,
            service_names,
            (site.networking.api_service_address,),
            with_chain=True,
        ),
        _signer("kube-apiserver-lb-signer", ten_years, server_bundle),
        Row("kube-apiserver-lb-server", lb, day, "kube-apiserver-lb-signer", SERVER, (site.api_host,), with_chain=True),
        Row(
            "kube-apiserver-internal-lb-server",
            lb,
            day,
            "kube-apiserver-lb-signer",
            SERVER,
            (site.api_int_host,),
            with_chain=True,
        ),
        _signer(
            "kube-apiserver-to-kubelet-signer",
            year,
            client_bundle,
            "masters and workers:/etc/kubernetes/kubelet-ca.crt (trusted)",
        ),
        Row("kube-apiserver-to-kubelet-client", apiserver, year, "kube-apiserver-to-kubelet-signer", CLIENT),
        _signer("kube-control-plane-signer", year, client_bundle),
        Row("kube-control-plane-kube-controller-manager-client", admin, year, "kube-control-plane-signer", CLIENT),
        Row("kube-control-plane-kube-scheduler-client", admin, year, "kube-control-plane-signer", CLIENT),
        _signer("kubelet-signer", day, client_bundle, "kube-controller-manager (signs the kubelets' requests)"),
        _signer("kubelet-bootstrap-kubeconfig-signer", ten_years, client_bundle, on_bootstrap=OnBootstrap.CERTIFICATE),
        _signer("aggregator-ca", day, common_name="aggregator", unit="bootkube"),
        Row("apiserver-proxy", proxy, day, "aggregator-ca", CLIENT),
        _signer("aggregator-signer", day, "kube-apiserver (trusted request-header CA)"),
        Row("aggregator-client", proxy, day, "aggregator-signer", CLIENT),
        Row(
            "machine-config-server",
            Subject("system:machine-config-server"),
            ten_years,
            "root-ca",
            SERVER,
            (site.api_int_host,),
            also_in=("Secret openshift-machine-config-operator/machine-config-server-tls",),
        ),
        Row(
            "journal-gatewayd",
            Subject("journal-gatewayd", ("OpenShift Bootstrap",)),
            ten_years,
            "root-ca",
            BOTH,
            (site.fqdn(site.bootstrap), "localhost"),
            (site.bootstrap.address, *LOOPBACK),
        ),
        Row(
            REGISTRY_ROW,
            Subject("registry"),
            ten_years,
            "root-ca",
            SERVER,
            (site.fqdn(site.helper), REGISTRY),
            (site.helper.address,),
            on_bootstrap=OnBootstrap.NOTHING,
            also_in=("helper: registry",),
        ),
    )


def _etcd(site: Site) -> tuple[Row, ...]:
    leaves = [
        Row("etcd-client", Subject("etcd-client", ("etcd-client", "system:etcd")), _LEAF, "etcd-signer", CLIENT),
        Row("etcd-metric-client", Subject("etcd-metric", ("etcd-metric",)), _LEAF, "etcd-metric-signer", CLIENT),
    ]
    for machine in (site.bootstrap, *site.masters):
        leaves += (
            _etcd_member(site, machine, "etcd-peer", "etcd-signer"),
            _etcd_member(site, machine, "etcd-serving", "etcd-signer"),
            _etcd_member(site, machine, "etcd-serving-metrics", "etcd-metric-signer"),
        )
    signers = (
        _signer(name, Validity.FIVE_YEARS, common_name=f"openshift-etcd_{name}@{ISSUED_AT}")
        for name in ("etcd-signer", "etcd-metric-signer")
    )
    return (*signers, *leaves)


_LEAF = Validity.THREE_YEARS
_ETCD_NAMES = (
    "etcd.kube-system.svc",
    "etcd.kube-system.svc.cluster.local",
    "etcd.openshift-etcd.svc",
    "etcd.openshift-etcd.svc.cluster.local",
    "localhost",
)


def _etcd_member(site: Site, machine: Machine, kind: str, signer: str) -> Row:
    return Row(
        f"etcd-all-certs/{kind}-{site.fqdn(machine)}",
        Subject(str(machine.address)),
        _LEAF,
        signer,
        BOTH,
        _ETCD_NAMES,
        (machine.address, *LOOPBACK),
        also_in=() if machine == site.bootstrap else (f"{machine.name}: etcd (through Secret etcd-all-certs)",),
    )


def _machines(site: Site) -> tuple[Row, ...]:
    """A machine's credential is in one file, in that machine's config, and nowhere else."""
    return tuple(
        Row(
            f"join/{machine.name}",
            join.subject_for(site.fqdn(machine), machine.role),
            Validity.DAY,
            "kubelet-bootstrap-kubeconfig-signer",
            CLIENT,
            on_bootstrap=OnBootstrap.NOTHING,
            also_in=(f"{machine.name}:/etc/kubernetes/kubeconfig",),
        )
        for machine in (*site.masters, *site.workers)
    )


SERVER_CA_BUNDLE = "kube-apiserver-complete-server-ca-bundle"
CLIENT_CA_BUNDLE = "kube-apiserver-complete-client-ca-bundle"
LOCALHOST_CA_BUNDLE = "kube-apiserver-localhost-ca-bundle"
TO_KUBELET_CA_BUNDLE = "kube-apiserver-to-kubelet-ca-bundle"

BUNDLES = (
    Bundle(
        SERVER_CA_BUNDLE,
        ("kube-apiserver-localhost-signer", "kube-apiserver-service-network-signer", "kube-apiserver-lb-signer"),
    ),
    Bundle(
        CLIENT_CA_BUNDLE,
        (
            "admin-kubeconfig-signer",
            "kubelet-signer",
            "kube-control-plane-signer",
            "kube-apiserver-to-kubelet-signer",
            "kubelet-bootstrap-kubeconfig-signer",
        ),
    ),
    Bundle(LOCALHOST_CA_BUNDLE, ("kube-apiserver-localhost-signer",)),
    Bundle(TO_KUBELET_CA_BUNDLE, ("kube-apiserver-to-kubelet-signer",)),
    Bundle("kubelet-client-ca-bundle", ("kubelet-signer",)),
    Bundle("kubelet-serving-ca-bundle", ("kubelet-signer",)),
    Bundle("aggregator-ca-bundle", ("aggregator-signer",)),
    Bundle("etcd-ca-bundle", ("etcd-signer",)),
    Bundle("etcd-metrics-ca-bundle", ("etcd-metric-signer",)),
)

KEY_PAIRS = ("service-account", "bound-service-account-signing-key")
"""Keys that sign service account tokens: no certificate, no expiry."""


# As assets


def certificate_assets(site: Site) -> list[Asset]:
    return [_certificate(row, site.key_algorithm) for row in rows(site)]


def key_assets(algorithm: KeyAlgorithm) -> list[Asset]:
    return [_key_pair(name, algorithm) for name in KEY_PAIRS]


def _certificate(row: Row, algorithm: KeyAlgorithm) -> Asset:
    signer = f"tls/{row.signer}" if row.signer else None

    def make(given: Given) -> Files:
        authority = given.parsed(signer, pair_in) if signer else None
        stamp = str(int(given.now.timestamp()))
        subject = Subject(
            row.subject.common_name.replace(ISSUED_AT, stamp), row.subject.organizations, row.subject.unit
        )
        pair = issue(
            subject,
            row.validity,
            given.now,
            algorithm=algorithm,
            signer=authority,
            uses=row.uses,
            dns=row.dns,
            addresses=row.addresses,
        )
        chain = certificate_pem(authority.certificate) if authority and row.with_chain else b""
        return {row.certificate_path: certificate_pem(pair.certificate) + chain, row.key_path: key_pem(pair.key)}

    def check(files: Files) -> None:
        if is_authority(pair_in(files).certificate) == bool(row.uses):
            raise ValueError("a signer's certificate was expected" if not row.uses else "a signer cannot be used here")

    return Asset(
        row.asset,
        make,
        facts={
            "subject": row.subject,
            "validity": row.validity.value,
            "uses": row.uses,
            "names": [row.dns, row.addresses, row.with_chain],
            "key_algorithm": algorithm,
        },
        needs=(signer,) if signer else (),
        once=True,
        life=_life_in,
        check=check,
    )


def _key_pair(name: str, algorithm: KeyAlgorithm) -> Asset:
    def make(_: Given) -> Files:
        key = new_key(algorithm)
        return {f"tls/{name}.key": key_pem(key), f"tls/{name}.pub": public_pem(key)}

    def check(files: Files) -> None:
        if public_pem(load_key(files[f"tls/{name}.key"])) != files[f"tls/{name}.pub"]:
            raise ValueError("the public key is not that of the private key")

    return Asset(f"tls/{name}", make, facts={"key_algorithm": algorithm}, once=True, check=check)


def certificate_in(files: Files) -> bytes:
    """The certificate (with its chain, where it has one) among the files of a row's asset."""
    return next(content for path, content in files.items() if path.endswith(".crt"))


def key_in(files: Files) -> bytes:
    return next(content for path, content in files.items() if path.endswith(".key"))


def pair_in(files: Files) -> Pair:
    return load_pair(certificate_in(files), key_in(files))


def _life_in(files: Files) -> Life:
    return life_of(load_certificates(certificate_in(files))[0])


def bundle(name: str, given: Given) -> bytes:
    """The signers' certificates of a bundle, out of what an asset was given."""
    entry = next(entry for entry in BUNDLES if entry.name == name)
    return b"".join(certificate_in(given.files(f"tls/{signer}")) for signer in entry.signers)


def signers_of(name: str) -> tuple[str, ...]:
    """The assets a bundle is made of."""
    return tuple(f"tls/{signer}" for entry in BUNDLES if entry.name == name for signer in entry.signers)
