"""Who may join, from the assets into the cluster."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from falsework.assets.catalogue import create
from falsework.kube.client import Object
from falsework.site.load import default_site
from falsework.stages.membership import Membership, inventory_patch, join_patch


def entry(name: str) -> dict[str, str]:
    return {"name": name, "role": "worker", "mac": "m", "address": "a"}


def inventory(*machines: str) -> Object:
    listed = [entry(name) for name in machines]
    site = {"machines": listed, "balancers": ["b"]}
    return {"data": {"inventory.json": json.dumps(listed), "site.json": json.dumps(site)}}


def wanted(*machines: str) -> Membership:
    listed = [entry(name) for name in machines]
    return Membership(listed, {"machines": listed, "balancers": ["b"]}, {name: name.encode() for name in machines})


def known(**credentials: str) -> Object:
    return {"data": {name: base64.b64encode(text.encode()).decode() for name, text in credentials.items()}}


def test_the_assets_say_who_belongs_to_the_site(tmp_path: Path) -> None:
    site = default_site()
    create(site, tmp_path)
    found = Membership.in_folder(tmp_path)
    assert [machine["name"] for machine in found.inventory] == [site.fqdn(machine) for machine in site.machines]
    assert found.site["machines"] == found.inventory
    assert found.join.keys() == {site.fqdn(machine) for machine in (*site.masters, *site.workers)}
    assert all(b"client-key-data" in content for content in found.join.values())


def test_an_inventory_that_is_right_is_left_alone() -> None:
    assert inventory_patch(wanted("a", "b"), inventory("a", "b"), {"a"}) is None


def test_a_new_machine_comes_into_the_inventory() -> None:
    assert inventory_patch(wanted("a", "b"), inventory("a"), {"a"}) == inventory("a", "b")
    assert inventory_patch(wanted("a"), None, ()) == inventory("a")


def test_a_node_the_site_has_no_more_stays_known() -> None:
    assert inventory_patch(wanted("a"), inventory("a", "b"), {"a", "b"}) is None
    assert inventory_patch(wanted("a"), inventory("a", "b"), {"a"}) == inventory("a")


def test_only_machines_that_have_not_joined_get_a_new_credential() -> None:
    present = known(a="old", b="old", gone="old")
    assert join_patch(wanted("a", "b", "c"), present, {"a"}) == {"data": {**known(b="b", c="c")["data"], "gone": None}}
    assert join_patch(wanted("a"), known(a="old"), {"a"}) is None
    assert join_patch(wanted("a"), known(a="a"), ()) is None
