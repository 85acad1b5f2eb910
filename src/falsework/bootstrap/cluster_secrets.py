"""What the masters' control plane needs of the bootstrap's disk, as objects: keys, certificates, whom to trust, and
who belongs to the site. From here on the cluster has them, and its operators renew them.

Namespaces, names and keys are OpenShift's, where it has such an object.
"""

from __future__ import annotations

from pathlib import Path

from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.assets.kubeconfig import redirected
from falsework.bootstrap import places
from falsework.bootstrap.disk import Disk
from falsework.control_plane.flags import API_PORT
from falsework.manifests.objects import Manifests, Object, config_map, secret

ETCD = "openshift-etcd"
ETCD_OPERATOR = "openshift-etcd-operator"
KUBE_APISERVER = "openshift-kube-apiserver"
KUBE_CONTROLLER_MANAGER = "openshift-kube-controller-manager"
KUBE_SCHEDULER = "openshift-kube-scheduler"

CA_BUNDLE = "ca-bundle.crt"
"""The key of every ConfigMap that says whom to trust."""

_TLS = "kubernetes.io/tls"

_PAIRS: dict[str, dict[str, str]] = {
    ETCD: {"etcd-client": "etcd-client"},
    ETCD_OPERATOR: {"etcd-client": "etcd-client"},
    KUBE_APISERVER: {
        "aggregator-client": "aggregator-client",
        "etcd-client": "etcd-client",
        "external-loadbalancer-serving-certkey": "kube-apiserver-lb-server",
        "internal-loadbalancer-serving-certkey": "kube-apiserver-internal-lb-server",
        "kubelet-client": "kube-apiserver-to-kubelet-client",
        "localhost-serving-cert-certkey": "kube-apiserver-localhost-server",
        "service-network-serving-certkey": "kube-apiserver-service-network-server",
    },
    KUBE_CONTROLLER_MANAGER: {
        "csr-signer": "kubelet-signer",
        "kube-controller-manager-client-cert-key": "kube-control-plane-kube-controller-manager-client",
    },
    KUBE_SCHEDULER: {"kube-scheduler-client-cert-key": "kube-control-plane-kube-scheduler-client"},
}
"""Namespace → Secret with tls.crt and tls.key → the name of the two files."""

_BUNDLES: dict[str, dict[str, str]] = {
    ETCD_OPERATOR: {"etcd-ca-bundle": "etcd-ca-bundle"},
    KUBE_APISERVER: {
        "aggregator-client-ca": "aggregator-ca-bundle",
        "client-ca": "kube-apiserver-complete-client-ca-bundle",
        "etcd-serving-ca": "etcd-ca-bundle",
        "kube-apiserver-server-ca": "kube-apiserver-complete-server-ca-bundle",
        "kubelet-serving-ca": "kubelet-serving-ca-bundle",
    },
    KUBE_CONTROLLER_MANAGER: {"serviceaccount-ca": "kube-apiserver-complete-server-ca-bundle"},
    KUBE_SCHEDULER: {"serviceaccount-ca": "kube-apiserver-complete-server-ca-bundle"},
}
"""Namespace → ConfigMap with certificates of signers → the name of the file."""


def cluster_secrets(disk: Disk, facts: BootstrapFacts) -> Manifests:
    """By file names that put each after its namespace."""
    return {
        "0000_12_etcd_01_pki.yaml": [*_plain(disk, ETCD), *_plain(disk, ETCD_OPERATOR), *_etcd(disk, facts)],
        "0000_20_kube-apiserver_01_pki.yaml": [*_plain(disk, KUBE_APISERVER), *_kube_apiserver(disk, facts)],
        "0000_25_kube-controller-manager_01_pki.yaml": [
            *_plain(disk, KUBE_CONTROLLER_MANAGER),
            _token_keys(disk, "service-account-private-key", KUBE_CONTROLLER_MANAGER, "service-account"),
        ],
        "0000_25_kube-scheduler_01_pki.yaml": _plain(disk, KUBE_SCHEDULER),
        "0000_80_machine-config_01_site.yaml": _site(disk),
    }


def _plain(disk: Disk, namespace: str) -> list[Object]:
    """What is only another name for a file."""
    pairs = [
        secret(name, namespace, {"tls.crt": _tls(disk, f"{file}.crt"), "tls.key": _tls(disk, f"{file}.key")}, _TLS)
        for name, file in _PAIRS.get(namespace, {}).items()
    ]
    bundles = [
        config_map(name, namespace, {CA_BUNDLE: _tls(disk, f"{file}.crt").decode()})
        for name, file in _BUNDLES.get(namespace, {}).items()
    ]
    return [*pairs, *bundles]


def _etcd(disk: Disk, facts: BootstrapFacts) -> list[Object]:
    """The masters' certificates, by their full names. The bootstrap's own stay with it."""
    certificates = _below(disk, places.TLS / "etcd-all-certs")
    of_masters = {name: content for name, content in certificates.items() if f"-{facts.fqdn}." not in name}
    bundles = {"server-ca-bundle.crt": "etcd-ca-bundle.crt", "metrics-ca-bundle.crt": "etcd-metrics-ca-bundle.crt"}
    return [
        secret("etcd-all-certs", ETCD, of_masters),
        config_map("etcd-all-bundles", ETCD, {key: _tls(disk, name).decode() for key, name in bundles.items()}),
    ]


def _kube_apiserver(disk: Disk, facts: BootstrapFacts) -> list[Object]:
    # Tokens of the one kind are signed here; those of the other, by the controller manager, are only checked.
    checked = {
        f"service-account-{number:03}.pub": _tls(disk, f"{name}.pub").decode()
        for number, name in enumerate(("bound-service-account-signing-key", "service-account"), 1)
    }
    return [
        _token_keys(disk, "bound-service-account-signing-key", KUBE_APISERVER, "bound-service-account-signing-key"),
        config_map("sa-token-signing-certs", KUBE_APISERVER, checked),
        secret("node-kubeconfigs", KUBE_APISERVER, _node_kubeconfigs(disk, facts)),
    ]


def _token_keys(disk: Disk, name: str, namespace: str, file: str) -> Object:
    return secret(
        name, namespace, {f"service-account.{ending}": _tls(disk, f"{file}.{ending}") for ending in ("key", "pub")}
    )


def _node_kubeconfigs(disk: Disk, facts: BootstrapFacts) -> dict[str, bytes]:
    """The administrator's ways in from a master: for whoever has to mend one."""
    internal = disk.read(places.KUBECONFIG)
    return {
        "localhost.kubeconfig": disk.read(places.LOOPBACK_KUBECONFIG),
        "lb-int.kubeconfig": internal,
        "lb-ext.kubeconfig": redirected(internal, f"https://{facts.api_host}:{API_PORT}", facts.api_host),
    }


def _site(disk: Disk) -> list[Object]:
    """Who belongs to the site, and what each machine joins with."""
    joining = _below(disk, places.MCS_CONFIG / "bootstrap/join")
    inventory = {
        "inventory.json": disk.read(places.INVENTORY).decode(),
        "site.json": disk.read(places.MCS_CONFIG / "bootstrap/site.json").decode(),
    }
    return [
        secret(
            "machine-join",
            "openshift-machine-config-operator",
            {name.removesuffix(".kubeconfig"): content for name, content in joining.items()},
        ),
        config_map("machine-inventory", "openshift-config", inventory),
    ]


def _tls(disk: Disk, name: str) -> bytes:
    return disk.read(places.TLS / name)


def _below(disk: Disk, folder: Path) -> dict[str, bytes]:
    """By file name."""
    return {path.name: disk.read(path) for path in disk.files(folder)}
