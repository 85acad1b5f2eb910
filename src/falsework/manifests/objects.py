"""Kubernetes objects as data."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

Manifests = dict[str, list[Object]]
"""File name → its objects."""

RBAC = "rbac.authorization.k8s.io"


def named(api: str, kind: str, name: str, namespace: str | None = None, **rest: Any) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def cluster_role_binding(name: str, role: str, *subjects: Object) -> Object:
    role_ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return named(f"{RBAC}/v1", "ClusterRoleBinding", name, roleRef=role_ref, subjects=list(subjects))


def group(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def user(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def service_account(name: str, namespace: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
