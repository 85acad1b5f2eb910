"""flannel on every node, as data."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from falsework.kube.client import Object
from falsework.manifests.objects import named
from falsework.manifests.operators.network import FLANNEL, FLANNEL_NAMESPACE
from falsework.operators.network.settings import VXLAN, Settings

NAMESPACE = FLANNEL_NAMESPACE
CONFIG = "kube-flannel-cfg"
DAEMON_SET = "kube-flannel-ds"

_LABELS = {"app": "flannel", "k8s-app": "flannel", "tier": "node"}
_HASH = "falsework.io/config-hash"
_HEALTH_PORT = 9113


@dataclass(frozen=True)
class Images:
    flannel: str
    falsework: str


def objects(settings: Settings, api_url: str, images: Images) -> tuple[Object, Object]:
    """The configuration, and the DaemonSet that runs by it."""
    return config_map(settings), daemon_set(settings, api_url, images)


def net_conf(settings: Settings) -> Object:
    """Rules are made with nftables, as kube-proxy's are: of two kinds of tables the one would not see the other."""
    networks = {ipaddress.ip_network(cidr).version: cidr for cidr in settings.cluster_networks}
    backend: Object = {"Type": settings.backend}
    if settings.backend == VXLAN:
        # Its MTU is that of the links below; it takes off by itself what it adds.
        backend |= {"Port": settings.vxlan_port, "MTU": settings.link_mtu}
    return {
        "EnableIPv4": 4 in networks,
        "EnableIPv6": 6 in networks,
        **({"Network": networks[4]} if 4 in networks else {}),
        **({"IPv6Network": networks[6]} if 6 in networks else {}),
        "EnableNFTables": True,
        "Backend": backend,
    }


def config_map(settings: Settings) -> Object:
    result = named("v1", "ConfigMap", CONFIG, NAMESPACE, data={"net-conf.json": _text(net_conf(settings))})
    result["metadata"]["labels"] = _LABELS
    return result


def daemon_set(settings: Settings, api_url: str, images: Images) -> Object:
    """On all nodes, whatever state they are in: no other pod gets an address before this one has done its work.

    The node needs no flannel to be Ready: its runtime is told by an init container of Falsework's image, which every
    node has. flannel then connects what is there.
    """
    api = urlsplit(api_url)
    env: list[Object] = [
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        # Through the load balancer: the way to Services is not there yet.
        {"name": "KUBERNETES_SERVICE_HOST", "value": api.hostname},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(api.port)},
    ]
    spec = {
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "serviceAccountName": FLANNEL,
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 5,
        "initContainers": [_runtime_config(settings, images.falsework, env)],
        "containers": [_flanneld(images.flannel, env)],
        "volumes": [
            _host_folder("run", "/run/flannel"),
            _host_folder("cni", "/etc/cni/net.d"),
            {"name": "config", "configMap": {"name": CONFIG}},
        ],
    }
    # Neither reads its configuration a second time: with another one, there are other pods.
    annotations = {_HASH: hashlib.sha256(_text(net_conf(settings)).encode()).hexdigest()[:16]}
    result = named(
        "apps/v1",
        "DaemonSet",
        DAEMON_SET,
        NAMESPACE,
        spec={
            "selector": {"matchLabels": {"app": "flannel"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": _LABELS, "annotations": annotations}, "spec": spec},
        },
    )
    result["metadata"]["labels"] = _LABELS
    return result


def _runtime_config(settings: Settings, image: str, env: list[Object]) -> Object:
    return {
        "name": "cni-config",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            *("/usr/bin/python3", "-m", "falsework.in_machine", "cni-config"),
            f"--mtu={settings.mtu}",
            f"--link-mtu={settings.link_mtu}",
        ],
        "env": env,
        "resources": {"requests": {"cpu": "10m", "memory": "30Mi"}},
        "securityContext": _confined(),
        "volumeMounts": [{"name": "cni", "mountPath": "/etc/cni/net.d"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _flanneld(image: str, env: list[Object]) -> Object:
    health = {"httpGet": {"host": "127.0.0.1", "path": "/healthz", "port": _HEALTH_PORT}}
    return {
        "name": "kube-flannel",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "/usr/bin/flanneld",
            "--kube-subnet-mgr",
            "--ip-masq",
            "--iface=$(NODE_IP)",
            "--set-node-network-unavailable=false",
            "--healthz-ip=127.0.0.1",
            f"--healthz-port={_HEALTH_PORT}",
        ],
        "env": env,
        "resources": {"requests": {"cpu": "100m", "memory": "50Mi"}},
        "securityContext": _confined("NET_ADMIN", "NET_RAW"),
        "volumeMounts": [
            {"name": "run", "mountPath": "/run/flannel"},
            {"name": "config", "mountPath": "/etc/kube-flannel", "readOnly": True},
        ],
        "startupProbe": {**health, "periodSeconds": 1, "failureThreshold": 60},
        "livenessProbe": {**health, "periodSeconds": 10, "timeoutSeconds": 15, "failureThreshold": 8},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _confined(*capabilities: str) -> Object:
    """Root, for the host's folders and links, with no more rights than named."""
    return {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], **({"add": list(capabilities)} if capabilities else {})},
    }


def _host_folder(name: str, path: str) -> Object:
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def _text(value: Object) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
