"""Routers, as data."""

from __future__ import annotations

from pathlib import Path

from falsework.kube.client import Object
from falsework.manifests.objects import named
from falsework.manifests.operators.ingress import CONTROLLER, ROUTER, ROUTER_NAMESPACE
from falsework.manifests.workload import API_SERVER_URL
from falsework.operators.ingress.settings import Settings
from falsework.operators.router.config import Place
from falsework.operators.router.main import PORT

DEPLOYMENT = f"router-{CONTROLLER}"
SERVICE = f"router-internal-{CONTROLLER}"
LABELS = {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": CONTROLLER}
SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())
PLACE = Place(Path("/var/lib/haproxy"))

_SHARED = {"name": "shared", "mountPath": str(PLACE.folder)}
_PARTING = 60
"""Seconds the last requests have when a router ends."""


def haproxy_command(place: Place) -> list[str]:
    """One process that keeps another: with a new configuration there is a new one, and the old one ends with its last
    connection."""
    return ["/usr/sbin/haproxy", "-W", "-db", "-S", f"{place.master_socket},mode,600", "-f", str(place.config)]


def deployment(settings: Settings, falsework: str, haproxy: str) -> Object:
    """At most one on a node, which has the ports once: so an old one goes before a new one comes."""
    spec: Object = {
        "serviceAccountName": ROUTER,
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "enableServiceLinks": False,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": dict(settings.node_selector),
        "tolerations": [dict(entry) for entry in settings.tolerations],
        "terminationGracePeriodSeconds": _PARTING,
        # Of root they have the name alone: nothing of what root may do but to take a low port.
        "securityContext": {"runAsUser": 0, "runAsGroup": 0, "seccompProfile": {"type": "RuntimeDefault"}},
        # It begins before HAProxy, which needs something to start with, and ends after it.
        "initContainers": [_router(settings, falsework)],
        "containers": [_haproxy(haproxy)],
        "volumes": [
            {"name": "apiserver-url", "hostPath": {"path": API_SERVER_URL, "type": "File"}},
            # Keys of certificates are on no disk.
            {"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
        ],
    }
    rolling = {"maxUnavailable": "25%", "maxSurge": 0}
    return _labelled(
        named(
            "apps/v1",
            "Deployment",
            DEPLOYMENT,
            ROUTER_NAMESPACE,
            spec={
                "replicas": settings.replicas,
                "selector": {"matchLabels": LABELS},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
                "template": {
                    "metadata": {
                        "labels": LABELS,
                        "annotations": {"kubectl.kubernetes.io/default-container": "router"},
                    },
                    "spec": spec,
                },
            },
        )
    )


def service() -> Object:
    """For those inside the cluster."""
    ports = [
        {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
        for name, port in (("http", PLACE.http), ("https", PLACE.https), ("metrics", PLACE.health))
    ]
    spec = {"type": "ClusterIP", "selector": LABELS, "ports": ports}
    return _labelled(named("v1", "Service", SERVICE, ROUTER_NAMESPACE, spec=spec))


def disruption_budget() -> Object:
    spec = {"maxUnavailable": "50%", "selector": {"matchLabels": LABELS}}
    return _labelled(named("policy/v1", "PodDisruptionBudget", DEPLOYMENT, ROUTER_NAMESPACE, spec=spec))


def _router(settings: Settings, image: str) -> Object:
    health = {"httpGet": {"host": "127.0.0.1", "port": PORT, "path": "/healthz"}}
    return {
        "name": "router",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "command": [
            *("/usr/bin/python3", "-m", "falsework.in_machine", "router"),
            f"--name={CONTROLLER}",
            f"--domain={settings.domain}",
            f"--certificate={settings.certificate}",
            f"--folder={PLACE.folder}",
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
        "securityContext": _confined(),
        "startupProbe": {**health, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 120},
        "livenessProbe": {**health, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 3},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "apiserver-url", "mountPath": API_SERVER_URL, "readOnly": True}, _SHARED],
    }


def _haproxy(image: str) -> Object:
    ready = {"httpGet": {"host": "127.0.0.1", "port": PLACE.health, "path": "/healthz/ready"}}
    alive = {"tcpSocket": {"host": "127.0.0.1", "port": PLACE.health}}
    ports = (("http", PLACE.http), ("https", PLACE.https), ("metrics", PLACE.health))
    return {
        "name": "haproxy",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": haproxy_command(PLACE),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
        "securityContext": _confined("NET_BIND_SERVICE"),
        "readinessProbe": {**ready, "periodSeconds": 2, "timeoutSeconds": 5},
        "livenessProbe": {**alive, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 3},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_SHARED],
    }


def _confined(*capabilities: str) -> Object:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], **({"add": list(capabilities)} if capabilities else {})},
    }


def _labelled(body: Object) -> Object:
    body["metadata"]["labels"] = LABELS
    return body
