"""Kubeconfigs: one cluster, one user, everything embedded, so that the file alone is enough."""

from __future__ import annotations

import base64
from typing import Any

import yaml

from falsework.assets.serialize import to_yaml
from falsework.errors import FalseworkError


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


def merged(into: bytes, content: bytes, name: str) -> bytes:
    """A kubeconfig with another one's cluster and user in it, as a context of this name, which becomes the current one.
    What it had by that name is replaced; all else stays."""
    config = yaml.safe_load(into) or {}
    added = yaml.safe_load(content)
    if not isinstance(config, dict):
        raise FalseworkError("what is there is not a kubeconfig", fix="name another file with KUBECONFIG")
    entries = {
        "clusters": {"name": name, "cluster": added["clusters"][0]["cluster"]},
        "users": {"name": name, "user": added["users"][0]["user"]},
        "contexts": {"name": name, "context": {"cluster": name, "user": name}},
    }
    kept = {key: [each for each in config.get(key) or () if each.get("name") != name] for key in entries}
    lists = {key: [*kept[key], entry] for key, entry in entries.items()}
    return to_yaml({"apiVersion": "v1", "kind": "Config", **config, **lists, "current-context": name})


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
