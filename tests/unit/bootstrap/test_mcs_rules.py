"""Who gets what from the Machine Config Server, and in which spec."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.assets.ignition import File, Link, Unit, config
from falsework.config_server import rules
from falsework.config_server.accept_header import Unserved, wanted_spec
from falsework.config_server.older_specs import in_spec
from falsework.config_server.rules import Allowed, Refused, decide, parse_site

IGNITION = "application/vnd.coreos.ignition+json"
MACHINES = [
    {"name": f"{name}.lab.test", "role": role, "mac": f"52:54:00:00:00:0{index}", "address": f"10.0.0.{index}"}
    for index, (name, role) in enumerate([("b", "bootstrap"), ("m", "master"), ("w", "worker")], start=1)
]
SITE = parse_site(json.dumps({"machines": MACHINES, "balancers": ["10.0.0.9"]}).encode())


@pytest.mark.parametrize(
    ("header", "spec"),
    [
        ("", (3, 2)),
        ("*/*", (3, 2)),
        ("application/json", (3, 2)),
        (IGNITION, (3, 2)),
        (f"{IGNITION};version=3.2.0", (3, 2)),
        (f"{IGNITION};version=3.5.0, */*;q=0.1", (3, 2)),
        (f"{IGNITION}; version=3.99.0", (3, 2)),
        (f'{IGNITION};version="3.4.0"', (3, 2)),
        (f"{IGNITION};version=3.1.0", (3, 1)),
        (f"{IGNITION};version=3.0.0", (3, 0)),
        (f"{IGNITION};version=2.2.0;q=0.5, {IGNITION};version=3.1.0;q=0.9", (3, 1)),
        (f"{IGNITION};version=9.0.0, {IGNITION};version=3.3.0;q=0.2", (3, 2)),
        (f"{IGNITION};version=3.1.0;q=0.1, {IGNITION};version=3.0.0;q=0.2", (3, 0)),
        (f"{IGNITION};version=nonsense", (3, 2)),
        (f"{IGNITION};version=4.0.0;q=0", (3, 2)),
        (f"{IGNITION};version=2.4.0", Unserved.NOT_EXPRESSIBLE),
        (f"{IGNITION};version=2.2.0", Unserved.NOT_EXPRESSIBLE),
        (f"{IGNITION};version=2.1.0", Unserved.UNSUPPORTED),
        (f"{IGNITION};version=1.0.0, */*", Unserved.UNSUPPORTED),
        (f"{IGNITION};version=4.0.0", Unserved.UNSUPPORTED),
    ],
)
def test_the_accept_header(header: str, spec: tuple[int, int] | Unserved) -> None:
    assert wanted_spec(header) == spec


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_accept_header_has_an_answer(header: str) -> None:
    wanted_spec(header)
    wanted_spec(f"{IGNITION};version={header}")
    wanted_spec(f"{IGNITION};q={header};version=3.1.0")


@pytest.mark.parametrize(
    ("target", "client", "status"),
    [
        ("/config/master", "10.0.0.2", None),
        ("/config/master?token=x", "10.0.0.2", None),
        ("/config/worker", "10.0.0.2", 403),
        ("/config/worker", "10.0.0.3", 500),
        ("/config/bootstrap", "10.0.0.1", 500),
        ("/config/master", "10.0.0.1", 403),
        ("/config/master", "10.0.0.9", 403),
        ("/config/master", "10.0.0.77", 403),
        ("/config/nothing", "10.0.0.2", 403),
        ("/config/master/", "10.0.0.2", 404),
        ("/config/" + "x" * 65, "10.0.0.2", 404),
        ("/config/", "10.0.0.2", 404),
        ("/config", "10.0.0.2", 404),
        ("//config/master", "10.0.0.2", 404),
        ("/x/../config/master", "10.0.0.2", 404),
        ("http://host/config/master", "10.0.0.2", 404),
        ("/", "10.0.0.2", 404),
    ],
)
def test_who_gets_what(target: str, client: str, status: int | None) -> None:
    found = decide(target, client, SITE, ("master",))
    if status is None:
        assert isinstance(found, Allowed)
        assert (found.machine.address, found.pool) == (client, "master")
    else:
        assert isinstance(found, Refused)
        assert found.status == status
        assert "10.0.0" not in found.sentence


def test_the_ledger_is_told_more() -> None:
    def because(client: str) -> str:
        found = decide("/config/master", client, SITE, ("master",))
        assert isinstance(found, Refused)
        return found.because

    assert because("10.0.0.3") == "w.lab.test is a worker and gets that config alone"
    assert "PROXY protocol" in because("10.0.0.9")
    assert because("10.0.0.77") == "the address belongs to no machine of the site"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"machines": [{}], "balancers": []}', b'{"machines": [1], "balancers": []}', b"1"]
)
def test_a_site_that_is_none(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_site(content)
    assert decide("/config/master", "10.0.0.2", rules.NOBODY, ("master",)) == Refused(
        HTTPStatus.FORBIDDEN,
        "Configs are for machines of this site: each gets that of its role.",
        "the address belongs to no machine of the site",
    )


def test_what_all_specs_have_is_called_by_the_older_name() -> None:
    plain = config(
        files=[File("/a", b"x", group="core")],
        links=[Link("/b", "/a")],
        units=[Unit("x.service", "[Unit]\n", enabled=True, dropins={"a.conf": "[Unit]\n"})],
        ssh_keys={"core": ["ssh-ed25519 x"]},
    )
    assert in_spec(plain, (3, 0)) == {**plain, "ignition": {"version": "3.0.0"}}
    assert plain["ignition"]["version"] == "3.2.0"


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"storage": {"luks": []}}, "storage.luks"),
        ({"ignition": {"version": "3.2.0", "proxy": {"httpProxy": "x"}}}, "ignition.proxy"),
        (
            {"storage": {"files": [{"path": "/a", "contents": {"httpHeaders": []}}]}},
            "storage.files.contents.httpHeaders",
        ),
        ({"passwd": {"users": [{"name": "core", "shouldExist": False}]}}, "passwd.users.shouldExist"),
        ({"storage": "nonsense"}, "storage"),
    ],
)
def test_what_an_older_spec_may_not_have_is_named(more: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=f"^{place} cannot be expressed in spec 3.1.0$"):
        in_spec({**config(), **more}, (3, 1))
