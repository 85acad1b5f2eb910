"""Who gets what from the boot server."""

from __future__ import annotations

import dataclasses
import json
import math
from http import HTTPStatus
from itertools import product

import pytest
from helper_samples import changed, rich
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.helper import expectations
from falsework.helper.boot import boots, config_path
from falsework.helper.boot_rules import Allowed, Folder, Inventory, Refused, decide, parse_inventory
from falsework.helper.boot_server_files import inventory
from falsework.helper.expectations import ALWAYS, Stretch
from falsework.site.load import default_site
from falsework.site.model import Machine, Site

SITE = default_site()
INVENTORY = parse_inventory(inventory(SITE))
NOT_EXPECTED = "it is not expected to boot now"


def url_path(site: Site, machine: Machine) -> str:
    return f"/ignition/{config_path(site, machine)}"


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize(("asking", "wanted"), list(product([*SITE.machines, None], SITE.machines)))
def test_a_config_is_for_its_own_machine_alone_and_only_while_it_is_expected(
    asking: Machine | None, wanted: Machine, expected: bool
) -> None:
    client = str(asking.address) if asking else "192.168.126.77"
    decision = decide(url_path(SITE, wanted), client, INVENTORY, "" if expected else NOT_EXPECTED)
    if asking is wanted and expected:
        assert decision == Allowed(Folder.CONFIGS, tuple(config_path(SITE, wanted).split("/")))
        return
    assert isinstance(decision, Refused)
    assert decision.status is HTTPStatus.FORBIDDEN
    for machine in SITE.machines:
        assert machine.name not in decision.sentence
        assert str(machine.address) not in decision.sentence
    if asking is None:
        assert decision.because == "the address belongs to no machine of the site"
    elif asking is wanted:
        assert decision.because == NOT_EXPECTED
    else:
        assert decision.because.startswith(f"that is the config of {wanted.name}; {asking.name} gets ")


def test_one_cannot_tell_which_configs_there_are() -> None:
    client = str(SITE.masters[0].address)
    others = [decide(path, client, INVENTORY, "") for path in (url_path(SITE, SITE.masters[1]), "/ignition/nobody.ign")]
    assert len({(one.status, one.sentence) for one in others if isinstance(one, Refused)}) == 1


def test_what_a_machine_is_told_to_boot_is_what_it_gets() -> None:
    for site in (SITE, rich()):
        listed = parse_inventory(inventory(site))
        for boot in boots(site):
            url = next(word.partition("=")[2] for word in boot.arguments if "ignition" in word and "http" in word)
            path = "/" + url.split("/", 3)[3]
            assert isinstance(decide(path, str(boot.machine.address), listed, ""), Allowed)


def test_a_config_several_machines_share_is_for_each_of_them() -> None:
    site = rich()
    listed = parse_inventory(inventory(site))
    for machine in site.masters:
        assert isinstance(decide("/ignition/master.ign", str(machine.address), listed, ""), Allowed)
    refused = decide("/ignition/master.ign", str(site.workers[0].address), listed, "")
    assert isinstance(refused, Refused)
    assert ", ".join(sorted(machine.name for machine in site.masters)) in refused.because


@pytest.mark.parametrize("client", ["192.168.126.101", "10.1.2.3"])
@pytest.mark.parametrize(
    "path", ["/falsework/kernel", "/falsework/rootfs.img", "/ipxe/52-54-00-6d-cd-8a.ipxe", "/falsework/kernel?x=/../y"]
)
def test_boot_files_are_for_everybody(path: str, client: str) -> None:
    names = tuple(path.partition("?")[0].split("/")[1:])
    assert decide(path, client, INVENTORY, NOT_EXPECTED) == Allowed(Folder.PUBLIC, names)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//",
        "*",
        "falsework/kernel",
        "http://helper/falsework/kernel",
        "/falsework/",
        "/falsework//kernel",
        "/../etc/passwd",
        "/falsework/../../etc/passwd",
        "/falsework/./kernel",
        "/falsework/.hidden",
        "/%2e%2e/etc/passwd",
        "/falsework%2fkernel",
        "/falsework/%6bernel",
        "/falsework/ker\0nel",
        "/falsework/kernel\n",
        "/falsework\\kernel",
        "/ignition%2fmachines/master-0.ign",
        "/x/../ignition/machines/master-0.ign",
        "/ignition/../ignition/machines/master-0.ign",
        "/ignition//machines/master-0.ign",
        "/" + "x" * 255,
        "/" + "x/" * 3000 + "x",
        "/falsework/kérnel",
    ],
)
def test_tricks_with_paths_lead_nowhere(path: str) -> None:
    decision = decide(path, str(SITE.masters[0].address), INVENTORY, "")
    assert isinstance(decision, Refused)
    assert decision.status is HTTPStatus.NOT_FOUND


@settings(deadline=None)
@given(st.text())
def test_an_allowed_path_is_made_of_plain_names(path: str) -> None:
    decision = decide(path, str(SITE.masters[0].address), INVENTORY, "")
    if isinstance(decision, Allowed):
        assert all(name and name[0] != "." and "/" not in name and name.isascii() for name in decision.path)
        assert decision.folder is Folder.PUBLIC or "/".join(decision.path) == "machines/master-0.ign"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"machines": [1]}', b'{"machines": [{"name": "x"}]}', b"\xff"]
)
def test_a_damaged_inventory_is_told(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_inventory(content)


def test_the_inventory_has_every_machine() -> None:
    site = changed()
    listed: Inventory = parse_inventory(inventory(site))
    assert [machine.name for machine in listed.values()] == [machine.name for machine in site.machines]
    assert {machine.mac for machine in listed.values()} == {machine.mac for machine in site.machines}


# Expectations


def test_expected_is_who_is_written_down_and_only_then() -> None:
    expected = expectations.parse(b'{"a": true, "b": {"since": 100, "until": 200}, "c": {"until": 50.5}, "d": {}}')
    for moment, names in {0: "acd", 60: "ad", 100: "abd", 199.9: "abd", 200: "ad"}.items():
        assert [name for name in "abcde" if expectations.is_expected(expected, name, moment)] == list(names)


def test_others_stay_as_they_are() -> None:
    first = expectations.expecting({}, ["a", "b"], Stretch(until=100))
    second = expectations.expecting(first, ["b", "c"])
    assert second == {"a": Stretch(until=100), "b": ALWAYS, "c": ALWAYS}
    assert expectations.no_longer(second, ["a", "c", "nobody"]) == {"b": ALWAYS}


times = st.floats(allow_nan=False, allow_infinity=False)
stretches = st.builds(Stretch, since=times | st.just(-math.inf), until=times | st.just(math.inf))


@settings(deadline=None)
@given(st.dictionaries(st.text(), stretches))
def test_what_is_written_is_read(expected: dict[str, Stretch]) -> None:
    assert expectations.parse(expectations.written(expected)) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b'{"a": false}',
        b'{"a": 1}',
        b'{"a": {"until": "x"}}',
        b'{"a": {"untill": 3}}',
        b"{",
        b"\xff",
    ],
)
def test_a_damaged_list_is_told(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        expectations.parse(content)


def test_not_a_number_is_no_time() -> None:
    with pytest.raises(ValueError, match=r"\w"):
        expectations.parse(json.dumps({"a": {"since": math.nan}}).encode())


def test_a_stretch_is_closed_below_and_open_above() -> None:
    assert dataclasses.astuple(ALWAYS) == (-math.inf, math.inf)
    assert Stretch(1, 2).includes(1)
    assert not Stretch(1, 2).includes(2)
