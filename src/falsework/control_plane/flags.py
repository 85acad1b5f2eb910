"""What Kubernetes' own programs are told. The temporary ones on the bootstrap and the lasting ones on the masters are
told the same; only where their files are, whom they call and who calls them differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from falsework.assets.bootstrap_facts import Network

Flags = dict[str, Any]

API_PORT = 6443
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
ISSUER = "https://kubernetes.default.svc"

SHUTDOWN_DELAY = 10
"""Seconds in which a stopping API server says it is not ready and still answers everything: the load balancer looks
twice a second, and one of somebody else's should look at least every few seconds."""
_DRAINING = 60
"""Seconds in which it ends what it has begun, watches too."""
API_GRACE = SHUTDOWN_DELAY * 2 + _DRAINING
"""Seconds a stopping API server is given before it is killed."""


@dataclass(frozen=True)
class PairFiles:
    certificate: str
    key: str


@dataclass(frozen=True)
class ApiServerFiles:
    """Whom it trusts, and what it shows to whom."""

    client_ca: str
    etcd_ca: str
    etcd_client: PairFiles
    kubelet_ca: str
    kubelet_client: PairFiles
    serving: PairFiles
    """Shown to whoever comes by an address and not by a name: that is how pods come."""
    serving_by_name: tuple[PairFiles, ...]
    aggregator_ca: str
    aggregator_client: PairFiles
    token_key: str
    """Signs the tokens of service accounts."""
    token_checks: tuple[str, ...]
    """Public keys; a token signed for any of them is good."""


@dataclass(frozen=True)
class ControllerManagerFiles:
    kubeconfig: str
    csr_signer: PairFiles
    root_ca: str
    """Given to every pod as the API's."""
    token_key: str


def kube_apiserver(
    files: ApiServerFiles,
    address: str,
    internal_api: str,
    etcd_servers: Sequence[str],
    service_networks: Sequence[str],
    shutdown_delay: int = SHUTDOWN_DELAY,
) -> Flags:
    """`internal_api` is the URL by which machines and pods of the cluster reach the API."""
    return {
        "advertise-address": address,
        "bind-address": "0.0.0.0",
        "secure-port": str(API_PORT),
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "client-ca-file": files.client_ca,
        "etcd-servers": ",".join(etcd_servers),
        "etcd-cafile": files.etcd_ca,
        "etcd-certfile": files.etcd_client.certificate,
        "etcd-keyfile": files.etcd_client.key,
        "kubelet-certificate-authority": files.kubelet_ca,
        "kubelet-client-certificate": files.kubelet_client.certificate,
        "kubelet-client-key": files.kubelet_client.key,
        "kubelet-preferred-address-types": "InternalIP,Hostname",
        "service-cluster-ip-range": ",".join(service_networks),
        "service-node-port-range": "30000-32767",
        "shutdown-delay-duration": f"{shutdown_delay}s",
        "shutdown-send-retry-after": "true",
        # Time enough for those who watch to go elsewhere one after the other, and not all at once.
        "shutdown-watch-termination-grace-period": f"{(shutdown_delay + 1) // 2}s",
        "tls-cert-file": files.serving.certificate,
        "tls-private-key-file": files.serving.key,
        "tls-sni-cert-key": [f"{pair.certificate},{pair.key}" for pair in files.serving_by_name],
        "requestheader-client-ca-file": files.aggregator_ca,
        "requestheader-allowed-names": "system:kube-apiserver-proxy",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": files.aggregator_client.certificate,
        "proxy-client-key-file": files.aggregator_client.key,
        "service-account-issuer": ISSUER,
        # Otherwise each server would name its own address here, for which no certificate is shown.
        "service-account-jwks-uri": f"{internal_api}/openid/v1/jwks",
        "api-audiences": ISSUER,
        "service-account-signing-key-file": files.token_key,
        "service-account-key-file": list(files.token_checks),
    }


def kube_controller_manager(
    files: ControllerManagerFiles, cluster_networks: Sequence[Network], service_networks: Sequence[str]
) -> Flags:
    """One at a time holds the lease, wherever it runs: two that give out node networks would give one out twice."""
    return {
        **_client_of_the_api(files.kubeconfig),
        "allocate-node-cidrs": "true",
        "cluster-cidr": ",".join(network.cidr for network in cluster_networks),
        **_node_masks(cluster_networks),
        "service-cluster-ip-range": ",".join(service_networks),
        "cluster-signing-cert-file": files.csr_signer.certificate,
        "cluster-signing-key-file": files.csr_signer.key,
        "root-ca-file": files.root_ca,
        "service-account-private-key-file": files.token_key,
    }


def kube_scheduler(kubeconfig: str) -> Flags:
    return _client_of_the_api(kubeconfig)


def _client_of_the_api(kubeconfig: str) -> Flags:
    return {
        "kubeconfig": kubeconfig,
        # Its own port is for this machine alone; asked for metrics by others, it would ask the API who they are.
        "bind-address": "127.0.0.1",
        "leader-elect": "true",
        "leader-elect-retry-period": "1s",
    }


def _node_masks(networks: Sequence[Network]) -> Flags:
    """How much of the cluster's networks one node gets; of two kinds of address, each its own."""
    if len({":" in network.cidr for network in networks}) == 1:
        return {"node-cidr-mask-size": str(networks[0].host_prefix)}
    return {
        f"node-cidr-mask-size-ipv{6 if ':' in network.cidr else 4}": str(network.host_prefix) for network in networks
    }
