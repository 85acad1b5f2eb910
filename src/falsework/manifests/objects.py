"""Kubernetes objects as data."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]

Manifests = dict[str, list[Object]]
"""File name → its objects."""

RBAC = "rbac.authorization.k8s.io"


def named(api: str, kind: str, name: str, namespace: str | None = None, **rest: Any) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def config_map(name: str, namespace: str, data: Mapping[str, str]) -> Object:
    return named("v1", "ConfigMap", name, namespace, data=dict(data))


def secret(name: str, namespace: str, data: Mapping[str, bytes], kind: str = "Opaque") -> Object:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return named("v1", "Secret", name, namespace, type=kind, data=encoded)


def cluster_role_binding(name: str, role: str, *subjects: Object) -> Object:
    role_ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return named(f"{RBAC}/v1", "ClusterRoleBinding", name, roleRef=role_ref, subjects=list(subjects))


def group(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def user(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def service_account(name: str, namespace: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
