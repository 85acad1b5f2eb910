"""CoreDNS on every node and the Service all pods ask, as data."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from falsework.kube.client import Object
from falsework.manifests.objects import config_map, named
from falsework.manifests.operators.dns import ACCOUNT, OPERAND_NAMESPACE
from falsework.operators.dns.corefile import PORT

NAME = "dns-default"
"""Of all of them."""

_OWNED = {"dns.operator.openshift.io/owning-dns": "default"}
_PODS = {"dns.operator.openshift.io/daemonset-dns": "default"}
_FILE = "Corefile"
_NOBODY = 65534
_MASTER_TAINTS = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")


def cluster_address(service_network: str) -> str:
    """The tenth: what kubelets tell pods to ask."""
    return str(ipaddress.ip_network(service_network)[10])


def corefile_map(text: str) -> Object:
    return _owned(config_map(NAME, OPERAND_NAMESPACE, {_FILE: text}))


def service(address: str) -> Object:
    """A question goes to the pod of the same node, and to others while that one is not ready."""
    ports = [
        {"name": name, "port": 53, "targetPort": name, "protocol": protocol}
        for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
    ]
    spec = {"clusterIP": address, "selector": _PODS, "ports": ports, "trafficDistribution": "PreferSameNode"}
    return _owned(named("v1", "Service", NAME, OPERAND_NAMESPACE, spec=spec))


def daemon_set(image: str, api_url: str, placement: Object) -> Object:
    """`placement` is spec.nodePlacement of DNS `default`."""
    spec = {
        "serviceAccountName": ACCOUNT,
        # The node's own resolv.conf: what the cluster does not know is asked there.
        "dnsPolicy": "Default",
        "enableServiceLinks": False,
        "priorityClassName": "system-node-critical",
        "nodeSelector": placement.get("nodeSelector") or {"kubernetes.io/os": "linux"},
        "tolerations": placement.get("tolerations") or [{"key": key, "operator": "Exists"} for key in _MASTER_TAINTS],
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_coredns(image, api_url)],
        "volumes": [{"name": "config-volume", "configMap": {"name": NAME}}],
    }
    return _owned(
        named(
            "apps/v1",
            "DaemonSet",
            NAME,
            OPERAND_NAMESPACE,
            spec={
                "selector": {"matchLabels": _PODS},
                # The new pod of a node is ready before the old one goes.
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0},
                },
                "template": {"metadata": {"labels": {**_OWNED, **_PODS}}, "spec": spec},
            },
        )
    )


def _coredns(image: str, api_url: str) -> Object:
    api = urlsplit(api_url)
    ready = {"httpGet": {"path": "/ready", "port": 8181}}
    return {
        "name": "dns",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/coredns", "-conf", f"/etc/coredns/{_FILE}"],
        "env": [
            # Through the load balancer, as kubelets do: names resolve even where a node's way to Services is broken.
            {"name": "KUBERNETES_SERVICE_HOST", "value": api.hostname},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(api.port)},
        ],
        "ports": [
            {"name": "dns", "containerPort": PORT, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": PORT, "protocol": "TCP"},
        ],
        "resources": {"requests": {"cpu": "50m", "memory": "70Mi"}},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
        # Often while it starts, seldom when it runs: the pods of all nodes are asked all the time. Not more seldom: a
        # kubelet that has just begun lets up to a whole period go by before it asks for the first time.
        "startupProbe": {**ready, "periodSeconds": 1, "timeoutSeconds": 3, "failureThreshold": 120},
        "readinessProbe": {**ready, "periodSeconds": 3, "timeoutSeconds": 3, "failureThreshold": 3},
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": 8080},
            "periodSeconds": 30,
            "timeoutSeconds": 10,
            "failureThreshold": 5,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _owned(body: Object) -> Object:
    body["metadata"]["labels"] = _OWNED
    return body
