"""The static pods of the temporary control plane: facts in, pods out.

All of them use the machine's own network: there is no other yet, and people look for the ports with `ss`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falsework.assets.bootstrap_facts import BOOT_ID, BootstrapFacts
from falsework.assets.serialize import to_yaml
from falsework.bootstrap import places

Pod = dict[str, Any]

API_PORT = 6443
MCS_PORT = 22623
ETCD_PORT = 2379
ETCD_PEER_PORT = 2380
ETCD_METRICS_PORT = 9978
ETCD_MEMBER_NAME = "etcd-bootstrap"
ISSUER = "https://kubernetes.default.svc"

SHUTDOWN_DELAY = 10
"""Seconds in which a stopping API server says it is not ready and still answers everything: the load balancer looks
twice a second, and one of somebody else's should look at least every few seconds."""
_DRAINING = 60
"""Seconds in which it ends what it has begun, watches too."""

_SECRETS = "/etc/kubernetes/secrets"
_KUBECONFIGS = "/etc/kubernetes/kubeconfigs"
_ETCD_CERTS = "/etc/ssl/etcd"
_ETCD_DATA = "/var/lib/etcd"


@dataclass(frozen=True)
class _Mount:
    name: str
    host: Path
    path: str
    kind: str = "Directory"
    read_only: bool = True


@dataclass(frozen=True)
class _Container:
    name: str
    image: str
    command: list[str]
    mounts: tuple[_Mount, ...]
    cpu: str
    memory: str
    env: dict[str, str] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)


def etcd(facts: BootstrapFacts) -> Pod:
    """One member, which stays when the rest of the temporary control plane goes: the masters' members join it.

    The only container whose name has `etcd` in it, with everything in its environment that etcdctl wants: that is
    how people call it. Its health is also told without a certificate, on the loopback interface, for the kubelet.
    """
    certs = f"{_ETCD_CERTS}/etcd-all-certs"
    peer, serving = (f"{certs}/etcd-{kind}-{facts.fqdn}" for kind in ("peer", "serving"))
    authority = f"{_ETCD_CERTS}/etcd-ca-bundle.crt"
    single_files = ("etcd-ca-bundle.crt", "etcd-client.crt", "etcd-client.key")
    client_url, peer_url = (f"https://{facts.address}:{port}" for port in (ETCD_PORT, ETCD_PEER_PORT))
    container = _Container(
        "etcd",
        facts.images["etcd"],
        _command(
            "etcd",
            {
                "name": ETCD_MEMBER_NAME,
                "data-dir": _ETCD_DATA,
                "initial-cluster": f"{ETCD_MEMBER_NAME}={peer_url}",
                "initial-cluster-state": "new",
                "initial-cluster-token": facts.domain,
                "initial-advertise-peer-urls": peer_url,
                "listen-peer-urls": f"https://0.0.0.0:{ETCD_PEER_PORT}",
                "advertise-client-urls": client_url,
                "listen-client-urls": f"https://0.0.0.0:{ETCD_PORT}",
                "listen-metrics-urls": f"http://127.0.0.1:{ETCD_METRICS_PORT}",
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
                "quota-backend-bytes": str(8 << 30),
            },
        ),
        (
            _Mount("certs", places.TLS / "etcd-all-certs", certs),
            *(
                _Mount(name.replace(".", "-"), places.TLS / name, f"{_ETCD_CERTS}/{name}", "File")
                for name in single_files
            ),
            _Mount("data", Path(_ETCD_DATA), _ETCD_DATA, "DirectoryOrCreate", read_only=False),
        ),
        "300m",
        "200Mi",
        env={
            "ETCDCTL_ENDPOINTS": client_url,
            "ETCDCTL_CACERT": authority,
            "ETCDCTL_CERT": f"{_ETCD_CERTS}/etcd-client.crt",
            "ETCDCTL_KEY": f"{_ETCD_CERTS}/etcd-client.key",
        },
        probes=_alive("/livez", ETCD_METRICS_PORT, "HTTP"),
    )
    return _pod("openshift-etcd", "etcd-bootstrap-member", container, labels={"k8s-app": "etcd"})


def kube_apiserver(facts: BootstrapFacts) -> Pod:
    headers = {
        "requestheader-client-ca-file": f"{_SECRETS}/aggregator-ca-bundle.crt",
        "requestheader-allowed-names": "system:kube-apiserver-proxy",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": f"{_SECRETS}/aggregator-client.crt",
        "proxy-client-key-file": f"{_SECRETS}/aggregator-client.key",
    }
    tokens = {
        "service-account-issuer": ISSUER,
        "api-audiences": ISSUER,
        "service-account-signing-key-file": f"{_SECRETS}/bound-service-account-signing-key.key",
        "service-account-key-file": [
            f"{_SECRETS}/bound-service-account-signing-key.pub",
            f"{_SECRETS}/service-account.pub",
        ],
    }
    # Whoever comes by an address and not by a name is shown the first one: that is how pods come.
    serving = {
        "tls-cert-file": f"{_SECRETS}/kube-apiserver-service-network-server.crt",
        "tls-private-key-file": f"{_SECRETS}/kube-apiserver-service-network-server.key",
        "tls-sni-cert-key": [
            f"{_SECRETS}/kube-apiserver-{name}-server.crt,{_SECRETS}/kube-apiserver-{name}-server.key"
            for name in ("localhost", "lb", "internal-lb")
        ],
    }
    container = _Container(
        "kube-apiserver",
        facts.images["kube-apiserver"],
        _command(
            "kube-apiserver",
            {
                "advertise-address": facts.address,
                "bind-address": "0.0.0.0",
                "secure-port": str(API_PORT),
                "allow-privileged": "true",
                "authorization-mode": "Node,RBAC",
                "enable-admission-plugins": "NodeRestriction",
                "client-ca-file": f"{_SECRETS}/kube-apiserver-complete-client-ca-bundle.crt",
                "etcd-servers": f"https://localhost:{ETCD_PORT}",
                "etcd-cafile": f"{_SECRETS}/etcd-ca-bundle.crt",
                "etcd-certfile": f"{_SECRETS}/etcd-client.crt",
                "etcd-keyfile": f"{_SECRETS}/etcd-client.key",
                "kubelet-certificate-authority": f"{_SECRETS}/kubelet-serving-ca-bundle.crt",
                "kubelet-client-certificate": f"{_SECRETS}/kube-apiserver-to-kubelet-client.crt",
                "kubelet-client-key": f"{_SECRETS}/kube-apiserver-to-kubelet-client.key",
                "kubelet-preferred-address-types": "InternalIP,Hostname",
                "service-cluster-ip-range": ",".join(facts.service_networks),
                "service-node-port-range": "30000-32767",
                "shutdown-delay-duration": f"{SHUTDOWN_DELAY}s",
                "shutdown-send-retry-after": "true",
                "shutdown-watch-termination-grace-period": f"{SHUTDOWN_DELAY}s",
                **serving,
                **headers,
                **tokens,
            },
        ),
        (_SECRET_FILES,),
        "500m",
        "500Mi",
        probes=_alive("/livez", API_PORT, "HTTPS"),
    )
    return _pod("openshift-kube-apiserver", "bootstrap-kube-apiserver", container, grace=SHUTDOWN_DELAY * 2 + _DRAINING)


def kube_controller_manager(facts: BootstrapFacts) -> Pod:
    """It takes the lease the masters' ones will ask for: two that give out node networks would give one out twice.
    Nobody else asks yet, so it has the lease at once."""
    return _client_of_the_api(
        facts,
        "kube-controller-manager",
        {
            "allocate-node-cidrs": "true",
            "cluster-cidr": ",".join(network.cidr for network in facts.cluster_networks),
            **_node_masks(facts),
            "service-cluster-ip-range": ",".join(facts.service_networks),
            "cluster-signing-cert-file": f"{_SECRETS}/kubelet-signer.crt",
            "cluster-signing-key-file": f"{_SECRETS}/kubelet-signer.key",
            "root-ca-file": f"{_SECRETS}/kube-apiserver-complete-server-ca-bundle.crt",
            "service-account-private-key-file": f"{_SECRETS}/service-account.key",
        },
        "60m",
        "100Mi",
    )


def kube_scheduler(facts: BootstrapFacts) -> Pod:
    return _client_of_the_api(facts, "kube-scheduler", {}, "20m", "50Mi")


def machine_config_server(facts: BootstrapFacts) -> Pod:
    """It needs files only, so it answers before anything else does."""
    container = _Container(
        "machine-config-server",
        facts.images["falsework"],
        [*_ours("machine-config-server"), f"--boot-id={BOOT_ID}"],
        (
            _Mount("boot-id", Path(BOOT_ID), BOOT_ID, "File"),
            _Mount("config", places.MCS_CONFIG, str(places.MCS_CONFIG)),
            _Mount("certs", places.MCS_TLS, str(places.MCS_TLS)),
            _Mount("state", places.MCS_STATE, str(places.MCS_STATE), "DirectoryOrCreate", read_only=False),
        ),
        "20m",
        "50Mi",
        probes={**_ready("/healthz", MCS_PORT, "HTTPS"), **_alive("/healthz", MCS_PORT, "HTTPS")},
    )
    return _pod("openshift-machine-config-operator", "bootstrap-machine-config-operator", container)


def cluster_version_operator(facts: BootstrapFacts) -> Pod:
    container = _Container(
        "cluster-version-operator",
        facts.images["falsework"],
        [
            *_ours("cluster-version-operator"),
            f"--kubeconfig={_KUBECONFIGS}/kubeconfig",
            f"--release-image={facts.release_image}",
            f"--release-version={facts.release_version}",
            *(f"--image={name}={reference}" for name, reference in sorted(facts.images.items())),
            "--leader-elect",
        ],
        (_KUBECONFIG_FILES,),
        "20m",
        "50Mi",
    )
    return _pod("openshift-cluster-version", "bootstrap-cluster-version-operator", container)


def kubeconfigs(loopback: bytes) -> dict[str, bytes]:
    """What these pods come to the API with, by file name. `loopback` is the administrator's on this machine."""
    return {
        "kubeconfig": loopback,
        **{f"{name}.kubeconfig": _own_kubeconfig(name) for name in ("kube-controller-manager", "kube-scheduler")},
    }


def _own_kubeconfig(name: str) -> bytes:
    certificate = f"{_SECRETS}/kube-control-plane-{name}-client"
    cluster = {
        "server": f"https://localhost:{API_PORT}",
        "certificate-authority": f"{_SECRETS}/kube-apiserver-localhost-ca-bundle.crt",
    }
    user = {"client-certificate": f"{certificate}.crt", "client-key": f"{certificate}.key"}
    return to_yaml(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "localhost", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "localhost", "user": name}}],
            "current-context": name,
        }
    )


# Parts


_SECRET_FILES = _Mount("secrets", places.TLS, _SECRETS)
_KUBECONFIG_FILES = _Mount("kubeconfigs", places.SECRETS, _KUBECONFIGS)


def _client_of_the_api(facts: BootstrapFacts, name: str, flags: dict[str, Any], cpu: str, memory: str) -> Pod:
    own = {
        "kubeconfig": f"{_KUBECONFIGS}/{name}.kubeconfig",
        # Its own port is for this machine alone; asked for metrics by others, it would ask the API who they are.
        "bind-address": "127.0.0.1",
        "leader-elect": "true",
        "leader-elect-retry-period": "1s",
    }
    mounts = (_SECRET_FILES, _KUBECONFIG_FILES)
    container = _Container(name, facts.images[name], _command(name, own | flags), mounts, cpu, memory)
    return _pod("kube-system", f"bootstrap-{name}", container)


def _node_masks(facts: BootstrapFacts) -> dict[str, str]:
    """How much of the cluster's networks one node gets; of two kinds of address, each its own."""
    networks = facts.cluster_networks
    if len({":" in network.cidr for network in networks}) == 1:
        return {"node-cidr-mask-size": str(networks[0].host_prefix)}
    return {
        f"node-cidr-mask-size-ipv{6 if ':' in network.cidr else 4}": str(network.host_prefix) for network in networks
    }


def _command(program: str, flags: dict[str, Any]) -> list[str]:
    """A flag with a list is given several times."""
    words = [f"/usr/bin/{program}"]
    for name, value in flags.items():
        words += [f"--{name}={entry}" for entry in (value if isinstance(value, list) else [value])]
    return words


def _ours(entry_point: str) -> list[str]:
    return ["/usr/bin/python3", "-m", "falsework.in_machine", entry_point]


def _ready(path: str, port: int, scheme: str) -> dict[str, Any]:
    return {
        "readinessProbe": {
            "httpGet": {"host": "127.0.0.1", "path": path, "port": port, "scheme": scheme},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
        }
    }


def _alive(path: str, port: int, scheme: str) -> dict[str, Any]:
    """Only what hangs for good is started anew: a machine with much to do is slow, not dead."""
    return {
        "livenessProbe": {
            "httpGet": {"host": "127.0.0.1", "path": path, "port": port, "scheme": scheme},
            "initialDelaySeconds": 30,
            "periodSeconds": 10,
            "timeoutSeconds": 15,
            "failureThreshold": 8,
        }
    }


def _pod(
    namespace: str, name: str, container: _Container, *, labels: dict[str, str] | None = None, grace: int = 30
) -> Pod:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                "openshift.io/control-plane": "true",
                "openshift.io/component": container.name,
                **(labels or {}),
            },
        },
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": grace,
            "containers": [_container(container)],
            "volumes": [
                {"name": mount.name, "hostPath": {"path": str(mount.host), "type": mount.kind}}
                for mount in container.mounts
            ],
        },
    }


def _container(container: _Container) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "imagePullPolicy": "IfNotPresent",
        "command": container.command,
        "resources": {"requests": {"cpu": container.cpu, "memory": container.memory}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": mount.name, "mountPath": mount.path, "readOnly": mount.read_only} for mount in container.mounts
        ],
        **container.probes,
    }
    if container.env:
        result["env"] = [{"name": name, "value": value} for name, value in container.env.items()]
    return result
