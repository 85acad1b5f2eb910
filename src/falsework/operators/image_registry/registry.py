"""The registry itself, as data: its configuration, its pods, and the Service they are reached by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from falsework.kube.client import Object
from falsework.manifests.objects import config_map, named
from falsework.manifests.operators.image_registry import NAMESPACE
from falsework.operators.image_registry.names import CONFIG, PORT, PRIVATE, REGISTRY, ROUTE, SERVING
from falsework.operators.image_registry.settings import Settings

CONFIG_FILE = "config.yml"
CONTENT_HASH = "falsework.io/content-hash"
STORAGE = "/registry"

_LABELS = {"docker-registry": "default"}
_CONFIG_FOLDER, _PRIVATE_FOLDER, _SERVING_FOLDER = "/etc/registry", "/etc/registry-private", "/etc/registry-tls"
_NOBODY = 65534


def config(settings: Settings) -> Object:
    return {
        "version": 0.1,
        "log": {"level": settings.log_level, "formatter": "json", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": STORAGE},
            "delete": {"enabled": True},
            "maintenance": {"readonly": {"enabled": settings.read_only}},
        },
        "http": {
            "addr": f":{PORT}",
            # By a route it has another name, and would send people to its own.
            "relativeurls": True,
            "draintimeout": "25s",
            "tls": {"certificate": f"{_SERVING_FOLDER}/tls.crt", "key": f"{_SERVING_FOLDER}/tls.key"},
        },
        "auth": {"htpasswd": {"realm": "openshift", "path": f"{_PRIVATE_FOLDER}/htpasswd"}},
    }


def config_object(settings: Settings) -> Object:
    """JSON is YAML, too."""
    return config_map(CONFIG, NAMESPACE, {CONFIG_FILE: json.dumps(config(settings), indent=2) + "\n"})


def service() -> Object:
    port = {"name": f"{PORT}-tcp", "port": PORT, "targetPort": PORT, "protocol": "TCP"}
    result = named("v1", "Service", REGISTRY, NAMESPACE, spec={"selector": _LABELS, "ports": [port]})
    result["metadata"]["labels"] = _LABELS
    return result


def route(host: str, bundle: str) -> Object:
    """TLS ends at the router, which looks whether it talks to the registry."""
    result = named(
        "route.openshift.io/v1",
        "Route",
        ROUTE,
        NAMESPACE,
        spec={
            "host": host,
            "to": {"kind": "Service", "name": REGISTRY, "weight": 100},
            "port": {"targetPort": PORT},
            "tls": {"termination": "reencrypt", "destinationCACertificate": bundle},
        },
    )
    result["metadata"]["labels"] = _LABELS
    return result


def deployment(settings: Settings, image: str, strategy: str, read_once: Iterable[bytes]) -> Object:
    """`read_once` is what a registry reads when it starts: with anything else, there are other pods."""
    digest = hashlib.sha256()
    for content in (json.dumps(config(settings)).encode(), *read_once):
        digest.update(hashlib.sha256(content).digest())
    pod = {
        "priorityClassName": "system-cluster-critical",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "nodeSelector": {"kubernetes.io/os": "linux", **settings.node_selector},
        "tolerations": list(settings.tolerations),
        "affinity": _apart(),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            # The volume is made writable for it, where its kind allows that.
            "fsGroup": _NOBODY,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(image)],
        "volumes": [
            {"name": "config", "configMap": {"name": CONFIG}},
            {"name": "private", "secret": {"secretName": PRIVATE, "defaultMode": 0o440}},
            {"name": "tls", "secret": {"secretName": SERVING, "defaultMode": 0o440}},
            _storage(settings.claim),
        ],
    }
    annotations = {CONTENT_HASH: digest.hexdigest()[:16]}
    result = named(
        "apps/v1",
        "Deployment",
        REGISTRY,
        NAMESPACE,
        spec={
            "replicas": settings.replicas,
            "strategy": {"type": strategy},
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS, "annotations": annotations}, "spec": pod},
        },
    )
    result["metadata"]["labels"] = _LABELS
    return result


def _container(image: str) -> Object:
    secret = {"secretKeyRef": {"name": PRIVATE, "key": "http-secret"}}
    # Whoever asks for this page needs to be nobody in particular.
    health = {"httpGet": {"path": "/", "port": PORT, "scheme": "HTTPS"}, "timeoutSeconds": 5}
    return {
        "name": "registry",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/registry", "serve", f"{_CONFIG_FOLDER}/{CONFIG_FILE}"],
        "env": [
            {"name": "REGISTRY_HTTP_SECRET", "valueFrom": secret},
            {"name": "OTEL_TRACES_EXPORTER", "value": "none"},
        ],
        "ports": [{"containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "readinessProbe": {**health, "periodSeconds": 5},
        "livenessProbe": {**health, "periodSeconds": 30, "initialDelaySeconds": 10},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": "private", "mountPath": _PRIVATE_FOLDER, "readOnly": True},
            {"name": "tls", "mountPath": _SERVING_FOLDER, "readOnly": True},
            {"name": "registry-storage", "mountPath": STORAGE},
        ],
    }


def _storage(claim: str) -> Object:
    source: Object = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
    return {"name": "registry-storage", **source}


def _apart() -> Object:
    """Several replicas on several nodes, if there are as many."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _LABELS}}
    rule = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [rule]}}
