"""Kubeconfigs: one cluster, one user, everything embedded, so that the file alone is enough."""

from __future__ import annotations

import base64
from typing import Any

from falsework.assets.serialize import to_yaml


def kubeconfig(cluster: str, server: str, authority: bytes, user: str, certificate: bytes, key: bytes) -> bytes:
    return to_yaml(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": cluster, "cluster": {"server": server, "certificate-authority-data": _encoded(authority)}}
            ],
            "users": [
                {
                    "name": user,
                    "user": {"client-certificate-data": _encoded(certificate), "client-key-data": _encoded(key)},
                }
            ],
            "contexts": [{"name": user, "context": {"cluster": cluster, "user": user}}],
            "current-context": user,
            "preferences": dict[str, Any](),
        }
    )


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
