"""Who may join, as the cluster has it: the inventory, and a fresh credential for each machine that has not joined yet.

bootkube wrote both once, from what the bootstrap's config brought. That config is kept up to date among the assets, so
it also says what they should be now.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from falsework.assets.bootstrap_config import HOME, MCS_HOME
from falsework.assets.ignition import files_in
from falsework.assets.ignition_configs import BOOTSTRAP
from falsework.kube.client import Object
from falsework.kube.resources import CONFIG_MAPS, NODES, SECRETS
from falsework.operators.machine_config import names
from falsework.stages.context import Context

_INVENTORY = (names.INVENTORY, names.INVENTORY_NAMESPACE)
_JOIN = (names.JOIN_SECRET, names.NAMESPACE)


@dataclass(frozen=True)
class Membership:
    """As the assets have it."""

    inventory: list[dict[str, str]]
    site: dict[str, Any]
    """The same machines, and the load balancers, as the Machine Config Server needs them."""
    join: dict[str, bytes]
    """Node name → the kubeconfig its machine joins with."""

    @classmethod
    def in_folder(cls, folder: Path) -> Membership:
        files = files_in(json.loads((folder / BOOTSTRAP).read_bytes()))
        join = {
            PurePosixPath(path).name.removesuffix(".kubeconfig"): content
            for path, content in files.items()
            if path.startswith(f"{MCS_HOME}/join/")
        }
        return cls(json.loads(files[f"{HOME}/inventory.json"]), json.loads(files[f"{MCS_HOME}/site.json"]), join)


def inventory_patch(wanted: Membership, present: Object | None, nodes: Collection[str]) -> Object | None:
    """What brings the inventory up to date; None if it is. A machine the site has no more stays as long as it is a
    node: `falsework node remove` is its way out."""
    data = (present or {}).get("data") or {}
    known = json.loads(data.get(names.INVENTORY_KEY) or "[]")
    ours = {entry["name"] for entry in wanted.inventory}
    left = [entry for entry in known if entry["name"] not in ours and entry["name"] in nodes]
    inventory = [*wanted.inventory, *left]
    site = {**wanted.site, "machines": [*wanted.site["machines"], *left]}
    if inventory == known and site == json.loads(data.get(names.SITE_KEY) or "{}"):
        return None
    return {"data": {names.INVENTORY_KEY: json.dumps(inventory), names.SITE_KEY: json.dumps(site)}}


def join_patch(wanted: Membership, present: Object | None, nodes: Collection[str]) -> Object | None:
    """What brings the credentials up to date; None if they are. A machine that is a node needs none, so its old one is
    left to expire."""
    known = (present or {}).get("data") or {}
    fresh = {name: base64.b64encode(content).decode() for name, content in wanted.join.items() if name not in nodes}
    changed: dict[str, str | None] = {name: text for name, text in fresh.items() if known.get(name) != text}
    changed |= {name: None for name in known if name not in wanted.join and name not in nodes}
    return {"data": changed} if changed else None


def is_up_to_date(context: Context) -> bool:
    return not any(_patches(context))


def bring_up_to_date(context: Context) -> None:
    inventory, join = _patches(context)
    client = context.cluster.client
    # First what it joins with: who is in the inventory may ask for it.
    if join:
        client.patch(SECRETS, _JOIN[0], join, _JOIN[1])
    if inventory:
        client.patch(CONFIG_MAPS, _INVENTORY[0], inventory, _INVENTORY[1])


def retire(context: Context, node: str) -> None:
    """A machine may neither join nor have a config any more."""
    client = context.cluster.client
    found = context.cluster.one(CONFIG_MAPS, *_INVENTORY)
    data = (found or {}).get("data") or {}
    inventory = [entry for entry in json.loads(data.get(names.INVENTORY_KEY) or "[]") if entry["name"] != node]
    site = json.loads(data.get(names.SITE_KEY) or "{}")
    site["machines"] = [entry for entry in site.get("machines", []) if entry["name"] != node]
    patch = {"data": {names.INVENTORY_KEY: json.dumps(inventory), names.SITE_KEY: json.dumps(site)}}
    client.patch(CONFIG_MAPS, _INVENTORY[0], patch, _INVENTORY[1])
    client.patch(SECRETS, _JOIN[0], {"data": {node: None}}, _JOIN[1])
    client.patch(CONFIG_MAPS, names.SERVED, {"data": {node: None}}, names.NAMESPACE)


def _patches(context: Context) -> tuple[Object | None, Object | None]:
    cluster = context.cluster
    wanted = Membership.in_folder(context.lab.site_folder)
    nodes = {str(node["metadata"]["name"]) for node in cluster.all(NODES)}
    return (
        inventory_patch(wanted, cluster.one(CONFIG_MAPS, *_INVENTORY), nodes),
        join_patch(wanted, cluster.one(SECRETS, *_JOIN), nodes),
    )
