"""Kubeconfigs: one cluster, one user, everything embedded, so that the file alone is enough."""

from __future__ import annotations

import base64
from typing import Any

import yaml

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


def redirected(content: bytes, server: str, name: str) -> bytes:
    """A kubeconfig that goes another way to the same server: `name` is what its certificate is for."""
    config = yaml.safe_load(content)
    for entry in config["clusters"]:
        entry["cluster"] |= {"server": server, "tls-server-name": name}
    return to_yaml(config)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
