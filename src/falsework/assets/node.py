"""What every machine runs: containerd and the kubelet, and on nodes kube-proxy too.

The settings fit a machine of its own. A machine that shares kernel and disk with its host (provider nspawn)
gets a few others from files of its own (`shared_kernel`), so that machines of a role still have one config.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from falsework.assets.ignition import File, Unit
from falsework.assets.serialize import to_toml, to_unit, to_yaml
from falsework.assets.served_config import JOIN_KUBECONFIG
from falsework.release.payload import REGISTRY
from falsework.site import ports
from falsework.site.model import IPAddress, Machine, Provider, Role, Site

CONTAINERD_SOCKET = "unix:///run/containerd/containerd.sock"
KUBELET_CA = "/etc/kubernetes/kubelet-ca.crt"
MANIFESTS = "/etc/kubernetes/manifests"
_KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
KUBELET_CONF_D = "/etc/openshift/kubelet.conf.d"
_CONTAINERD_CONF = "/etc/containerd/config.toml"
_CONTAINERD_SHARED_CONF = "/etc/containerd/shared-kernel.toml"
# The controllers of cgroup v1 come read-only into a container, and only a second mount at the same place changes that.
# With v2 these are not mounts but groups, which come and go.
_OPEN_CGROUPS = (
    "/bin/sh -ec 'for place in /sys/fs/cgroup/*/; do "
    "test -w $place || ! mountpoint -q $place || mount -o remount,bind,rw $place; done'"
)
_REGISTRIES = "/etc/containerd/certs.d"
_NODE_KUBECONFIG = "/var/lib/kubelet/kubeconfig"
_NODE_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
_API_SEEN = "/run/kubernetes-api-seen"


SSH = Unit("ssh.service", enabled=True)
SUDO = File("/etc/sudoers.d/core", b"core ALL=(ALL) NOPASSWD: ALL\n", 0o440)
"""The user that people log in as may do everything, as on OpenShift's machines."""


@dataclass(frozen=True)
class NodeFacts:
    """Everything of the site and the release that the machines' own services are set up with."""

    api_int_host: str
    dns_address: IPAddress
    cluster_cidrs: tuple[str, ...]
    sandbox_image: str
    registry_url: str

    @classmethod
    def of(cls, site: Site, sandbox_image: str) -> NodeFacts:
        networking = site.networking
        cidrs = tuple(str(network.cidr) for network in networking.cluster_networks)
        return cls(site.api_int_host, networking.dns_service_address, cidrs, sandbox_image, registry_url(site))


def registry_url(site: Site) -> str:
    """Where the release's images can be pulled from: their names' own host does not exist."""
    return f"https://{site.fqdn(site.helper)}:{ports.REGISTRY}"


# Container runtime


def runtime_files(sandbox_image: str, registry: str, registry_ca: bytes) -> list[File]:
    """`registry` is the URL that stands for the host in the names of the release's images."""
    crictl = {"runtime-endpoint": CONTAINERD_SOCKET, "image-endpoint": CONTAINERD_SOCKET}
    return [
        File(_CONTAINERD_CONF, containerd_config(sandbox_image, shared_kernel=False)),
        File("/etc/crictl.yaml", to_yaml(crictl)),
        *_registry_files(registry, registry_ca),
    ]


def _registry_files(url: str, authority: bytes) -> list[File]:
    folder = f"{_REGISTRIES}/{REGISTRY}"
    there = {"capabilities": ["pull", "resolve"], "ca": f"{folder}/ca.crt"}
    return [
        File(f"{folder}/hosts.toml", to_toml({"server": url, "host": {url: there}})),
        File(f"{folder}/ca.crt", authority),
    ]


_SELDOM_MEASURED = {"stats_collect_period": "1m", "stats_retention_period": "5m"}
"""containerd asks every container once a second how busy it is, for no one but `crictl stats`: the kubelet reckons that
itself. On a machine with thirty idle containers that would be most of its work."""


def containerd_config(sandbox_image: str, *, shared_kernel: bool) -> bytes:
    """In a container, without CAP_SYS_RESOURCE, no score may be lowered, and systemd's cgroups are not ours."""
    runc = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": not shared_kernel}}
    return to_toml(
        {
            "version": 3,
            "plugins": {
                "io.containerd.cri.v1.images": {
                    "pinned_images": {"sandbox": sandbox_image},
                    "registry": {"config_path": _REGISTRIES},
                },
                "io.containerd.cri.v1.runtime": {
                    "restrict_oom_score_adj": shared_kernel,
                    **_SELDOM_MEASURED,
                    "containerd": {"default_runtime_name": "runc", "runtimes": {"runc": runc}},
                },
            },
        }
    )


def containerd_unit() -> Unit:
    return Unit(
        "containerd.service",
        to_unit(
            Unit={"Description": "containerd container runtime", "After": "network.target local-fs.target"},
            Service={
                "Type": "notify",
                "Environment": f"CONTAINERD_CONFIG={_CONTAINERD_CONF}",
                "EnvironmentFile": "-/etc/containerd/machine.env",
                "ExecStart": "/usr/bin/containerd --config ${CONTAINERD_CONFIG}",
                "Restart": "always",
                "RestartSec": "1",
                "Delegate": "yes",
                "KillMode": "process",
                "OOMScoreAdjust": "-999",
                "TasksMax": "infinity",
            },
            Install={"WantedBy": "multi-user.target"},
        ),
        enabled=True,
    )


# Kubelet


def node_kubelet_config(role: Role, dns_address: IPAddress) -> bytes:
    config = _kubelet_config(
        authentication={
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": KUBELET_CA},
        },
        authorization={"mode": "Webhook"},
        serverTLSBootstrap=True,
        rotateCertificates=True,
        clusterDNS=[str(dns_address)],
        clusterDomain="cluster.local",
        maxPods=250,
        nodeStatusReportFrequency="5m",
    )
    if role is Role.MASTER:
        config["registerWithTaints"] = [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]
    return to_yaml(config)


def standalone_kubelet_config() -> bytes:
    """The bootstrap's: it runs static pods, knows no API server, and never becomes a node."""
    return to_yaml(
        _kubelet_config(
            authentication={
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": KUBELET_CA},
            },
            authorization={"mode": "AlwaysAllow"},
            registerNode=False,
        )
    )


def _kubelet_config(**settings: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": MANIFESTS,
        "containerRuntimeEndpoint": CONTAINERD_SOCKET,
        "cgroupDriver": "systemd",
        "failSwapOn": False,
        "readOnlyPort": 0,
        "serializeImagePulls": False,
        **settings,
    }


def kubelet_unit(*, standalone: bool) -> Unit:
    arguments = [f"--config={_KUBELET_CONF}", f"--config-dir={KUBELET_CONF_D}"]
    conditions: list[str] = []
    if not standalone:
        arguments += [f"--bootstrap-kubeconfig={JOIN_KUBECONFIG}", f"--kubeconfig={_NODE_KUBECONFIG}"]
        conditions = [f"|{_NODE_CERTIFICATE}", f"|{_API_SEEN}"]
    arguments += ["--node-ip=${KUBELET_NODE_IP}", "--v=2"]
    return Unit(
        "kubelet.service",
        to_unit(
            Unit={
                "Description": "Kubernetes Kubelet",
                "Wants": "containerd.service",
                "After": "containerd.service network-online.target",
                "ConditionPathExists": conditions,
            },
            Service={
                "Type": "notify",
                "Environment": "KUBELET_NODE_IP=",
                "ExecStartPre": f"/bin/mkdir -p {MANIFESTS} {KUBELET_CONF_D}",
                "ExecStart": " ".join(["/usr/bin/kubelet", *arguments]),
                "Restart": "always",
                "RestartSec": "1",
            },
            Install={"WantedBy": "multi-user.target"},
        ),
        enabled=True,
    )


def first_join_unit(api_int_host: str) -> Unit:
    """A machine's first kubelet starts when there is an API to join. It would retry by itself, after longer and longer
    pauses, and be late for an API that is up at last. A node that has joined needs nobody to start its pods."""
    answers = f"curl --silent --fail --insecure --max-time 5 --output /dev/null https://{api_int_host}:6443/readyz"
    steps = f"until {answers}; do sleep 0.4; done; touch {_API_SEEN}; exec systemctl start --no-block kubelet.service"
    return Unit(
        "first-join.service",
        to_unit(
            Unit={
                "Description": "Wait for the Kubernetes API, then start the kubelet for the first time",
                "After": "network-online.target",
                "ConditionPathExists": f"!{_NODE_CERTIFICATE}",
            },
            Service={"ExecStart": f"/bin/sh -c '{steps}'", "Restart": "on-failure", "RestartSec": "1"},
            Install={"WantedBy": "multi-user.target"},
        ),
        enabled=True,
    )


# Services


def kube_proxy_config(cluster_cidrs: tuple[str, ...]) -> bytes:
    """It acts as its node (the renewed certificate is read again from its file), and leaves connection
    tracking limits alone: they cannot be set in a network namespace."""
    return to_yaml(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": _NODE_KUBECONFIG},
            "clusterCIDR": ",".join(cluster_cidrs),
            "mode": "nftables",
            "conntrack": {"maxPerCore": 0, "min": 0},
        }
    )


def kube_proxy_units() -> list[Unit]:
    """kube-proxy starts the moment its node has a certificate."""
    service = to_unit(
        Unit={"Description": "Kubernetes Service routing", "After": "kubelet.service"},
        Service={
            "ExecStart": "/usr/bin/kube-proxy --config=/etc/kubernetes/kube-proxy.conf --v=2",
            "Restart": "always",
            "RestartSec": "1",
        },
    )
    path = to_unit(
        Unit={"Description": "Wait for the node's certificate, then route Services"},
        Path={"PathExists": _NODE_CERTIFICATE, "Unit": "kube-proxy.service"},
        Install={"WantedBy": "multi-user.target"},
    )
    return [Unit("kube-proxy.service", service), Unit("kube-proxy.path", path, enabled=True)]


def pod_guard() -> tuple[File, Unit]:
    """Pods are kept away from Machine Config Servers: behind their node's address they would be taken for the node."""
    path = "/etc/falsework/pod-guard.nft"
    rules = (
        # The first two lines make way for the third, however often this is read.
        "table inet falsework-pod-guard\n"
        "delete table inet falsework-pod-guard\n"
        "table inet falsework-pod-guard {\n"
        "    chain forward {\n"
        "        type filter hook forward priority filter - 10; policy accept;\n"
        f"        tcp dport {ports.MACHINE_CONFIG_SERVER} reject with tcp reset\n"
        "    }\n"
        "}\n"
    )
    unit = to_unit(
        Unit={"Description": "Keep pods away from the Machine Config Server", "Before": "kubelet.service"},
        Service={"Type": "oneshot", "RemainAfterExit": "yes", "ExecStart": f"/usr/sbin/nft --file {path}"},
        Install={"WantedBy": "multi-user.target"},
    )
    return File(path, rules.encode()), Unit("pod-guard.service", unit, enabled=True)


def api_server_url(api_int_host: str) -> File:
    """For what runs on the host's network before Service routing works."""
    text = f"KUBERNETES_SERVICE_HOST='{api_int_host}'\nKUBERNETES_SERVICE_PORT='6443'\n"
    return File("/etc/kubernetes/apiserver-url.env", text.encode())


# One machine


def kubelet_files(config: bytes, client_ca: bytes) -> list[File]:
    return [File(_KUBELET_CONF, config), File(KUBELET_CA, client_ca)]


def machine_files(machine: Machine, hostname: str, sandbox_image: str) -> list[File]:
    """What is this machine's own: its name, its address, and how it lives with its host."""
    node_ip = to_unit(Service={"Environment": f'"KUBELET_NODE_IP={machine.address}"'})
    files = [
        File("/etc/hostname", f"{hostname}\n".encode()),
        File("/etc/systemd/system/kubelet.service.d/20-nodenet.conf", node_ip.encode()),
    ]
    return [*files, *shared_kernel(sandbox_image)] if machine.provider is Provider.NSPAWN else files


@cache
def shared_kernel(sandbox_image: str) -> tuple[File, ...]:
    """For a machine in a container: the host's cgroups as they are, and the host's disk, which is not ours to judge."""
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
    }
    return (
        File(f"{KUBELET_CONF_D}/50-shared-kernel.conf", to_yaml(kubelet)),
        File(_CONTAINERD_SHARED_CONF, containerd_config(sandbox_image, shared_kernel=True)),
        File(
            "/etc/systemd/system/containerd.service.d/10-shared-kernel.conf",
            to_unit(Service={"ExecStartPre": _OPEN_CGROUPS}).encode(),
        ),
        File("/etc/containerd/machine.env", f"CONTAINERD_CONFIG={_CONTAINERD_SHARED_CONF}\n".encode()),
    )
