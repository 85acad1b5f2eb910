"""kube-apiserver's static pod on the masters, the same for all of them, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from falsework.control_plane import flags
from falsework.control_plane.flags import API_GRACE, API_PORT, ApiServerFiles
from falsework.control_plane.pods import Container, Pod, alive, command, ready, started
from falsework.control_plane.pods import pod as static_pod
from falsework.control_plane.revision_files import bundle_of, mount, of_config_map, of_secret, pair_of_secret
from falsework.operators.site_facts import SiteFacts

NAME = "kube-apiserver"
NAMESPACE = "openshift-kube-apiserver"
CONFIG_MAPS = (
    "aggregator-client-ca",
    "client-ca",
    "etcd-serving-ca",
    "kube-apiserver-server-ca",
    "kubelet-serving-ca",
    "sa-token-signing-certs",
)
SECRETS = (
    "aggregator-client",
    "bound-service-account-signing-key",
    "etcd-client",
    "external-loadbalancer-serving-certkey",
    "internal-loadbalancer-serving-certkey",
    "kubelet-client",
    "localhost-serving-cert-certkey",
    "node-kubeconfigs",
    "service-network-serving-certkey",
)

ETCD_PORT = 2379
_BY_NAME = (
    "localhost-serving-cert-certkey",
    "external-loadbalancer-serving-certkey",
    "internal-loadbalancer-serving-certkey",
)


def etcd_servers(addresses: Iterable[str]) -> list[str]:
    """The node's own member first, which is the nearest; the same list on every node."""
    hosts = (f"[{address}]" if ":" in address else address for address in sorted(addresses))
    return [f"https://{host}:{ETCD_PORT}" for host in ("localhost", *hosts)]


def pod(image: str, etcd: Sequence[str], site: SiteFacts, token_keys: Iterable[str]) -> Pod:
    """`token_keys` are the keys of ConfigMap sa-token-signing-certs."""
    files = ApiServerFiles(
        client_ca=bundle_of("client-ca"),
        etcd_ca=bundle_of("etcd-serving-ca"),
        etcd_client=pair_of_secret("etcd-client"),
        kubelet_ca=bundle_of("kubelet-serving-ca"),
        kubelet_client=pair_of_secret("kubelet-client"),
        serving=pair_of_secret("service-network-serving-certkey"),
        serving_by_name=tuple(map(pair_of_secret, _BY_NAME)),
        aggregator_ca=bundle_of("aggregator-client-ca"),
        aggregator_client=pair_of_secret("aggregator-client"),
        token_key=of_secret("bound-service-account-signing-key", "service-account.key"),
        token_checks=tuple(of_config_map("sa-token-signing-certs", key) for key in sorted(token_keys)),
    )
    container = Container(
        NAME,
        image,
        command(NAME, flags.kube_apiserver(files, "$(HOST_IP)", site.internal_api, etcd, site.service_networks)),
        (mount(NAME),),
        "265m",
        "1Gi",
        of_the_node={"HOST_IP": "status.hostIP"},
        probes={
            **started("/readyz", API_PORT, "HTTPS"),
            **ready("/readyz", API_PORT, "HTTPS"),
            **alive("/livez", API_PORT, "HTTPS"),
        },
    )
    labels = {"app": "openshift-kube-apiserver", "apiserver": "true"}
    return static_pod(NAMESPACE, NAME, container, labels=labels, grace=API_GRACE)
