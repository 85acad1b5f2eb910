"""Kubeconfigs that name files: whoever uses one reads them anew when they change."""

from __future__ import annotations

from typing import Any

from falsework.control_plane.flags import PairFiles


def kubeconfig_of_files(cluster: str, server: str, authority: str, user: str, pair: PairFiles) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": user, "user": {"client-certificate": pair.certificate, "client-key": pair.key}}],
        "contexts": [{"name": user, "context": {"cluster": cluster, "user": user}}],
        "current-context": user,
    }
