"""The static pods of the temporary control plane: facts in, pods out.

All of them use the machine's own network: there is no other yet, and people look for the ports with `ss`.
"""

from __future__ import annotations

from falsework.assets.bootstrap_facts import BOOT_ID, BootstrapFacts
from falsework.assets.serialize import to_yaml
from falsework.bootstrap import places
from falsework.control_plane import flags
from falsework.control_plane.flags import API_GRACE, API_PORT, ApiServerFiles, ControllerManagerFiles, Flags, PairFiles
from falsework.control_plane.kubeconfig_of_files import kubeconfig_of_files
from falsework.control_plane.pods import Container, Mount, alive, command, pod, ready
from falsework.control_plane.pods import Pod as Pod
from falsework.etcd import settings

MCS_PORT = 22623

_SECRETS = "/etc/kubernetes/secrets"
_KUBECONFIGS = "/etc/kubernetes/kubeconfigs"
_ETCD_CERTS = "/etc/ssl/etcd"
_ETCD_DATA = "/var/lib/etcd"


def etcd(facts: BootstrapFacts) -> Pod:
    """One member, which stays when the rest of the temporary control plane goes: the masters' members join it.

    The only container whose name has `etcd` in it, with everything in its environment that etcdctl wants: that is
    how people call it. Its health is also told without a certificate, on the loopback interface, for the kubelet.
    """
    certs = f"{_ETCD_CERTS}/etcd-all-certs"
    peer, serving = (f"{certs}/etcd-{kind}-{facts.fqdn}" for kind in ("peer", "serving"))
    authority = f"{_ETCD_CERTS}/etcd-ca-bundle.crt"
    single_files = ("etcd-ca-bundle.crt", "etcd-client.crt", "etcd-client.key")
    client_url, peer_url = settings.client_url(facts.address), settings.peer_url(facts.address)
    timing = settings.FIRST_MEMBER
    container = Container(
        "etcd",
        facts.images["etcd"],
        command(
            "etcd",
            {
                "name": settings.BOOTSTRAP_MEMBER,
                "data-dir": _ETCD_DATA,
                "initial-cluster": f"{settings.BOOTSTRAP_MEMBER}={peer_url}",
                "initial-cluster-state": "new",
                "initial-cluster-token": facts.domain,
                "initial-advertise-peer-urls": peer_url,
                "listen-peer-urls": f"https://0.0.0.0:{settings.PEER_PORT}",
                "advertise-client-urls": client_url,
                "listen-client-urls": f"https://0.0.0.0:{settings.CLIENT_PORT}",
                "listen-metrics-urls": f"http://127.0.0.1:{settings.METRICS_PORT}",
                "client-cert-auth": "true",
                "trusted-ca-file": authority,
                "cert-file": f"{serving}.crt",
                "key-file": f"{serving}.key",
                "peer-client-cert-auth": "true",
                "peer-trusted-ca-file": authority,
                "peer-cert-file": f"{peer}.crt",
                "peer-key-file": f"{peer}.key",
                # All masters may join at once: learners have no vote.
                "max-learners": str(facts.control_plane_replicas),
                "quota-backend-bytes": str(settings.QUOTA_BYTES),
                "heartbeat-interval": str(timing.heartbeat),
                "election-timeout": str(timing.election),
            },
        ),
        (
            Mount("certs", str(places.TLS / "etcd-all-certs"), certs),
            *(
                Mount(name.replace(".", "-"), str(places.TLS / name), f"{_ETCD_CERTS}/{name}", "File")
                for name in single_files
            ),
            Mount("data", _ETCD_DATA, _ETCD_DATA, "DirectoryOrCreate", read_only=False),
        ),
        "300m",
        "200Mi",
        env={
            "ETCDCTL_ENDPOINTS": client_url,
            "ETCDCTL_CACERT": authority,
            "ETCDCTL_CERT": f"{_ETCD_CERTS}/etcd-client.crt",
            "ETCDCTL_KEY": f"{_ETCD_CERTS}/etcd-client.key",
        },
        probes=alive("/livez", settings.METRICS_PORT, "HTTP"),
    )
    return pod("openshift-etcd", "etcd-bootstrap-member", container, labels={"k8s-app": "etcd"})


def kube_apiserver(facts: BootstrapFacts) -> Pod:
    files = ApiServerFiles(
        client_ca=f"{_SECRETS}/kube-apiserver-complete-client-ca-bundle.crt",
        etcd_ca=f"{_SECRETS}/etcd-ca-bundle.crt",
        etcd_client=_pair("etcd-client"),
        kubelet_ca=f"{_SECRETS}/kubelet-serving-ca-bundle.crt",
        kubelet_client=_pair("kube-apiserver-to-kubelet-client"),
        serving=_pair("kube-apiserver-service-network-server"),
        serving_by_name=tuple(_pair(f"kube-apiserver-{name}-server") for name in ("localhost", "lb", "internal-lb")),
        aggregator_ca=f"{_SECRETS}/aggregator-ca-bundle.crt",
        aggregator_client=_pair("aggregator-client"),
        token_key=f"{_SECRETS}/bound-service-account-signing-key.key",
        token_checks=(
            f"{_SECRETS}/bound-service-account-signing-key.pub",
            f"{_SECRETS}/service-account.pub",
        ),
    )
    own_etcd = settings.client_url("localhost")
    internal_api = f"https://{facts.api_int_host}:{API_PORT}"
    told = flags.kube_apiserver(
        files, facts.address, internal_api, [own_etcd], facts.service_networks, facts.api_shutdown_delay
    )
    container = Container(
        "kube-apiserver",
        facts.images["kube-apiserver"],
        command("kube-apiserver", told),
        (_SECRET_FILES,),
        "500m",
        "500Mi",
        # For the minute it lives everybody waits for it: memory is cheaper than collecting garbage often.
        env={"GOGC": "300"},
        probes=alive("/livez", API_PORT, "HTTPS"),
    )
    return pod("openshift-kube-apiserver", "bootstrap-kube-apiserver", container, grace=API_GRACE)


def kube_controller_manager(facts: BootstrapFacts) -> Pod:
    """It takes the lease the masters' ones will ask for. Nobody else asks yet, so it has the lease at once."""
    name = "kube-controller-manager"
    files = ControllerManagerFiles(
        kubeconfig=_kubeconfig(name),
        csr_signer=_pair("kubelet-signer"),
        root_ca=f"{_SECRETS}/kube-apiserver-complete-server-ca-bundle.crt",
        token_key=f"{_SECRETS}/service-account.key",
    )
    told = flags.kube_controller_manager(files, facts.cluster_networks, facts.service_networks)
    return _client_of_the_api(facts, name, told, "60m", "100Mi")


def kube_scheduler(facts: BootstrapFacts) -> Pod:
    name = "kube-scheduler"
    return _client_of_the_api(facts, name, flags.kube_scheduler(_kubeconfig(name)), "20m", "50Mi")


def machine_config_server(facts: BootstrapFacts) -> Pod:
    """It needs files only, so it answers before anything else does."""
    container = Container(
        "machine-config-server",
        facts.images["falsework"],
        [*_ours("machine-config-server"), f"--boot-id={BOOT_ID}"],
        (
            Mount("boot-id", BOOT_ID, BOOT_ID, "File"),
            Mount("config", str(places.MCS_CONFIG), str(places.MCS_CONFIG)),
            Mount("certs", str(places.MCS_TLS), str(places.MCS_TLS)),
            Mount("state", str(places.MCS_STATE), str(places.MCS_STATE), "DirectoryOrCreate", read_only=False),
        ),
        "20m",
        "50Mi",
        probes={**ready("/healthz", MCS_PORT, "HTTPS"), **alive("/healthz", MCS_PORT, "HTTPS")},
    )
    return pod("openshift-machine-config-operator", "bootstrap-machine-config-operator", container)


def cluster_version_operator(facts: BootstrapFacts) -> Pod:
    container = Container(
        "cluster-version-operator",
        facts.images["falsework"],
        [
            *_ours("cluster-version-operator"),
            f"--kubeconfig={_KUBECONFIGS}/kubeconfig",
            f"--release-image={facts.release_image}",
            f"--release-version={facts.release_version}",
            *(f"--image={name}={reference}" for name, reference in sorted(facts.images.items())),
            "--leader-elect",
            "--before-pivot",
        ],
        (_KUBECONFIG_FILES,),
        "20m",
        "50Mi",
    )
    return pod("openshift-cluster-version", "bootstrap-cluster-version-operator", container)


def kubeconfigs(loopback: bytes) -> dict[str, bytes]:
    """What these pods come to the API with, by file name. `loopback` is the administrator's on this machine."""
    return {
        "kubeconfig": loopback,
        **{f"{name}.kubeconfig": _own_kubeconfig(name) for name in ("kube-controller-manager", "kube-scheduler")},
    }


def _own_kubeconfig(name: str) -> bytes:
    return to_yaml(
        kubeconfig_of_files(
            "localhost",
            f"https://localhost:{API_PORT}",
            f"{_SECRETS}/kube-apiserver-localhost-ca-bundle.crt",
            name,
            _pair(f"kube-control-plane-{name}-client"),
        )
    )


# Parts


_SECRET_FILES = Mount("secrets", str(places.TLS), _SECRETS)
_KUBECONFIG_FILES = Mount("kubeconfigs", str(places.SECRETS), _KUBECONFIGS)


def _client_of_the_api(facts: BootstrapFacts, name: str, told: Flags, cpu: str, memory: str) -> Pod:
    mounts = (_SECRET_FILES, _KUBECONFIG_FILES)
    container = Container(name, facts.images[name], command(name, told), mounts, cpu, memory)
    return pod("kube-system", f"bootstrap-{name}", container)


def _pair(name: str) -> PairFiles:
    return PairFiles(f"{_SECRETS}/{name}.crt", f"{_SECRETS}/{name}.key")


def _kubeconfig(name: str) -> str:
    return f"{_KUBECONFIGS}/{name}.kubeconfig"


def _ours(entry_point: str) -> list[str]:
    return ["/usr/bin/python3", "-m", "falsework.in_machine", entry_point]
