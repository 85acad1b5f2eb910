"""What kubeadm's machines boot with, and what kubeadm and the cluster are told. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from falsework.assets import node
from falsework.assets.ignition import Config, File, Unit, config
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.assets.serialize import to_json, to_unit, to_yaml
from falsework.release.payload import Payload, repository_of
from falsework.site import ports
from falsework.site.model import Machine, Role, Site
from kubeadm_peer.images import tag_of

KUBEADM = "/usr/local/bin/kubeadm"
_API = "kubeadm.k8s.io/v1beta4"
_SUBNET = "/run/flannel/subnet.env"
_CNI_PROGRAM = "/usr/local/bin/flannel-cni"
# Flannel's own plug-in, which would read the file at every pod's start, is not part of the release.
_CNI_CODE = f"""\
#!/usr/bin/python3
import ipaddress, json, os
values = dict(line.strip().split("=", 1) for line in open("{_SUBNET}"))
subnet = ipaddress.ip_interface(values["FLANNEL_SUBNET"]).network
bridge = {{
    "type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "mtu": int(values["FLANNEL_MTU"]),
    "ipam": {{"type": "host-local", "ranges": [[{{"subnet": str(subnet)}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}},
}}
plugins = [bridge, {{"type": "portmap", "capabilities": {{"portMappings": True}}}}]
os.makedirs("/etc/cni/net.d", exist_ok=True)
with open("/etc/cni/net.d/.draft", "w") as file:
    json.dump({{"cniVersion": "1.0.0", "name": "cbr0", "plugins": plugins}}, file)
os.rename("/etc/cni/net.d/.draft", "/etc/cni/net.d/10-flannel.conflist")
"""


@dataclass(frozen=True)
class Secrets:
    token: str
    certificate_key: str


# Machines


def machine_config(site: Site, machine: Machine, registry_ca: bytes, ssh_keys: tuple[str, ...]) -> Config:
    """The same container runtime, kubelet and settings as Falsework's nodes have, and nothing that joins a cluster."""
    sandbox = DEFAULT_PAYLOAD.sandbox_image
    return config(
        files=[
            *node.runtime_files(sandbox, node.registry_url(site), registry_ca),
            *node.machine_files(machine, site.fqdn(machine), sandbox),
            File("/etc/sysctl.d/90-forwarding.conf", b"net.ipv4.ip_forward = 1\n"),
            File(_CNI_PROGRAM, _CNI_CODE.encode(), 0o755),
            node.SUDO,
        ],
        units=[node.SSH, node.containerd_unit(), _kubelet(), *_cni_units()],
        ssh_keys={"core": ssh_keys},
    )


def _kubelet() -> Unit:
    """As kubeadm's package has it: kubeadm starts it when its config is written."""
    arguments = (
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
        f"--config-dir={node.KUBELET_CONF_D}",
        "--node-ip=${KUBELET_NODE_IP}",
        "$KUBELET_KUBEADM_ARGS",
    )
    text = to_unit(
        Unit={"Description": "Kubernetes Kubelet", "Wants": "containerd.service", "After": "containerd.service"},
        Service={
            "EnvironmentFile": "-/var/lib/kubelet/kubeadm-flags.env",
            "ExecStart": " ".join(("/usr/bin/kubelet", *arguments)),
            "Restart": "always",
            "RestartSec": "1",
        },
    )
    return Unit("kubelet.service", text)


def _cni_units() -> list[Unit]:
    service = to_unit(
        Unit={"Description": "Tell containerd of flannel's network"},
        Service={"Type": "oneshot", "RemainAfterExit": "yes", "ExecStart": _CNI_PROGRAM},
    )
    path = to_unit(Path={"PathExists": _SUBNET}, Install={"WantedBy": "multi-user.target"})
    return [Unit("flannel-cni.service", service), Unit("flannel-cni.path", path, enabled=True)]


# kubeadm


def init_config(site: Site, payload: Payload, secrets: Secrets) -> bytes:
    first = site.masters[0]
    pods = site.networking.cluster_networks[0]
    mask = {"name": "node-cidr-mask-size", "value": str(pods.host_prefix)}
    return to_yaml(
        {
            "apiVersion": _API,
            "kind": "InitConfiguration",
            "bootstrapTokens": [{"token": secrets.token}],
            "certificateKey": secrets.certificate_key,
            "localAPIEndpoint": _local_endpoint(first),
            "nodeRegistration": _registration(site, first),
        },
        {
            "apiVersion": _API,
            "kind": "ClusterConfiguration",
            "clusterName": site.cluster_name,
            "kubernetesVersion": tag_of(payload),
            "controlPlaneEndpoint": _endpoint(site),
            "imageRepository": repository_of("x").rpartition("/")[0],
            "networking": {
                "podSubnet": str(pods.cidr),
                "serviceSubnet": str(site.networking.service_networks[0]),
            },
            "controllerManager": {"extraArgs": [mask]},
            "etcd": {"local": {"imageTag": payload.images["etcd"].version}},
            "dns": {"imageTag": payload.images["coredns"].version},
        },
        {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs"},
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            # They cannot be set in a network namespace.
            "conntrack": {"maxPerCore": 0, "min": 0},
        },
    )


def join_config(site: Site, machine: Machine, secrets: Secrets) -> bytes:
    joining: dict[str, Any] = {
        "apiVersion": _API,
        "kind": "JoinConfiguration",
        "nodeRegistration": _registration(site, machine),
        "discovery": {
            "bootstrapToken": {
                "token": secrets.token,
                "apiServerEndpoint": _endpoint(site),
                "unsafeSkipCAVerification": True,
            }
        },
    }
    if machine.role is Role.MASTER:
        joining["controlPlane"] = {
            "localAPIEndpoint": _local_endpoint(machine),
            "certificateKey": secrets.certificate_key,
        }
    return to_yaml(joining)


def _endpoint(site: Site) -> str:
    return f"{site.api_host}:{ports.API}"


def _local_endpoint(machine: Machine) -> dict[str, Any]:
    return {"advertiseAddress": str(machine.address), "bindPort": ports.API}


def _registration(site: Site, machine: Machine) -> dict[str, Any]:
    return {
        "name": site.fqdn(machine),
        "criSocket": node.CONTAINERD_SOCKET,
        # Namespace machines have no kernel of their own that its checks could find fit.
        "ignorePreflightErrors": ["all"],
    }


# Network


def flannel(site: Site, payload: Payload) -> bytes:
    """As flannel's own manifest, but for the API's address: at that of its Service it would wait for kube-proxy."""
    name, namespace = "flannel", "kube-flannel"
    here = {"name": name, "namespace": namespace}
    network = {
        "Network": str(site.networking.cluster_networks[0].cidr),
        "EnableNFTables": True,
        "Backend": {"Type": "vxlan"},
    }
    rights = "rbac.authorization.k8s.io"
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
            ],
        },
        {
            "apiVersion": f"{rights}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rights, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", **here}],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kube-flannel-cfg", "namespace": namespace},
            "data": {"net-conf.json": to_json(network).decode()},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "kube-flannel-ds", "namespace": namespace},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": _flannel_pod(site, payload)},
            },
        },
    ]
    return to_json({"apiVersion": "v1", "kind": "List", "items": objects})


def _flannel_pod(site: Site, payload: Payload) -> dict[str, Any]:
    def own(variable: str, field: str) -> dict[str, Any]:
        return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": field}}}

    return {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": "flannel",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "kube-flannel",
                "image": f"{repository_of('flannel')}:{payload.images['flannel'].version}",
                "args": ["--ip-masq", "--kube-subnet-mgr", "--iface=eth0"],
                "env": [
                    own("POD_NAME", "metadata.name"),
                    own("POD_NAMESPACE", "metadata.namespace"),
                    {"name": "KUBERNETES_SERVICE_HOST", "value": site.api_host},
                    {"name": "KUBERNETES_SERVICE_PORT", "value": str(ports.API)},
                ],
                "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
                "volumeMounts": [
                    {"name": "run", "mountPath": "/run/flannel"},
                    {"name": "config", "mountPath": "/etc/kube-flannel"},
                ],
            }
        ],
        "volumes": [
            {"name": "run", "hostPath": {"path": "/run/flannel", "type": "DirectoryOrCreate"}},
            {"name": "config", "configMap": {"name": "kube-flannel-cfg"}},
        ],
    }
