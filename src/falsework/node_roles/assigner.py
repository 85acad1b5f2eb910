"""Gives each Node its role, once or whenever it is asked to look again. Used on the bootstrap machine and in the
cluster; both may be at work at the same time, as both want the same.

Rights it needs: nodes get, list, watch and patch; schedulers.config.openshift.io get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from falsework.kube.client import ApiError, Client, Object
from falsework.kube.resources import NODES, SCHEDULERS
from falsework.node_roles.rules import correction
from falsework.site.model import Role

FirstConfig = Callable[[str], str | None]
"""Node name → the rendered config its machine was made with, as far as anybody knows."""


def assign(
    client: Client,
    node: Object,
    roles: Mapping[str, Role],
    masters_schedulable: bool | None,
    first_config: FirstConfig,
) -> str | None:
    """What was changed, for people; None if the Node is right, is gone, or belongs to no machine of the site."""
    name = str(node["metadata"]["name"])
    role = roles.get(name)
    if role not in (Role.MASTER, Role.WORKER):
        return None
    patch = correction(node, role, masters_schedulable, first_config(name))
    if patch is None:
        return None
    try:
        client.patch(NODES, name, patch)
    except ApiError as error:
        if error.is_missing:
            return None
        raise
    return f"Node {name} is a {role}: {_told(patch)}"


def masters_schedulable(client: Client) -> bool | None:
    """None while the cluster has not been told."""
    try:
        found = client.get(SCHEDULERS, "cluster")
    except ApiError as error:
        if error.is_missing:
            return None
        raise
    return is_schedulable(found)


def is_schedulable(scheduler: Object) -> bool:
    return bool((scheduler.get("spec") or {}).get("mastersSchedulable"))


def remembered(node: Object) -> Object:
    """What of a Node is needed to judge it."""
    return {"metadata": node.get("metadata"), "spec": node.get("spec")}


def _told(patch: Object) -> str:
    labels = patch["metadata"].get("labels") or {}
    parts = [f"{'-' if value is None else '+'}{key}" for key, value in labels.items()]
    if "spec" in patch:
        taints = ", ".join(f"{taint['key']}:{taint['effect']}" for taint in patch["spec"]["taints"])
        parts.append(f"taints {taints or 'none'}")
    if "annotations" in patch["metadata"]:
        parts.append("the config it was made with")
    return ", ".join(parts)
