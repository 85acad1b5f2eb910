"""What is decided about a lab's network from what is found of it."""

from __future__ import annotations

import dataclasses
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.lab.folder import NETWORK, Lab
from falsework.lab.journal import Journal
from falsework.machines import nat
from falsework.machines.network import Facts, Link, Network, machines_of, port_of, steps
from falsework.site.load import default_site
from falsework.site.model import Provider, Site

SITE = default_site()
LAB = Lab("fw-00000000", Path("/state/fw-00000000"), Path("/site"))
SETTINGS = {
    "net/ipv4/ip_forward": "0",
    "net/ipv6/conf/default/accept_ra": "0",
    "net/ipv6/conf/default/addr_gen_mode": "1",
    "net/bridge/bridge-nf-call-iptables": "0",
    "net/bridge/bridge-nf-call-ip6tables": "0",
    "net/bridge/bridge-nf-call-arptables": "0",
}


def link(name: str, index: int, **fields: object) -> Link:
    plain = Link(name, index, "", "", True, 1500, "", 0, frozenset())
    return dataclasses.replace(plain, **fields)  # type: ignore[arg-type]


def complete() -> Facts:
    bridge = link(SITE.lab.name, 2, kind="bridge", addresses=frozenset([f"{SITE.lab.gateway}/24"]))
    ours = {"lo": link("lo", 1), bridge.name: bridge}
    links: dict[str, dict[str, Link]] = {NETWORK: ours}
    for index, machine in enumerate(machines_of(SITE), 3):
        port = port_of(machine)
        ours[port] = link(port, index, master=bridge.name, peer_index=2)
        links[machine.name] = {"lo": link("lo", 1), "eth0": link("eth0", 2, mac=machine.mac, peer_index=index)}
    return Facts(links, settings=SETTINGS)


def changed(facts: Facts, name: str, interface: str, **fields: object) -> Facts:
    links = {each: dict(found) for each, found in facts.links.items()}
    links[name][interface] = dataclasses.replace(links[name][interface], **fields)  # type: ignore[arg-type]
    return dataclasses.replace(facts, links=links)


def test_nothing_is_done_about_what_is_complete() -> None:
    assert steps(SITE, LAB, complete()) == []


def test_everything_is_made_from_nothing() -> None:
    found = steps(SITE, LAB, Facts())
    assert [step.namespace for step in found if step.namespace] == [
        NETWORK, "helper", "bootstrap", "master-0", "master-1", "master-2", "worker-0", "worker-1",
    ]  # fmt: skip
    assert sum("cable of" in step.what for step in found) == len(machines_of(SITE))
    assert all(len(port_of(machine)) <= 15 for machine in machines_of(SITE)), "the kernel's limit"


@pytest.mark.parametrize(
    ("name", "interface", "fields", "lines"),
    [
        ("master-0", "eth0", {"up": False}, ["link set eth0 up"]),
        ("master-0", "lo", {"up": False}, ["link set lo up"]),
        (
            "master-0",
            "eth0",
            {"mac": "52:54:00:00:00:01"},
            ["link set eth0 down", f"link set eth0 address {SITE.masters[0].mac}", "link set eth0 up"],
        ),
        (
            NETWORK,
            port_of(SITE.masters[0]),
            {"master": ""},
            [f"link set {port_of(SITE.masters[0])} master {SITE.lab.name} up"],
        ),
        (
            NETWORK,
            SITE.lab.name,
            {"addresses": frozenset(["10.0.0.1/24"])},
            [f"address flush dev {SITE.lab.name} scope global", f"address add 192.168.126.1/24 dev {SITE.lab.name}"],
        ),
    ],
)
def test_only_what_is_wrong_is_put_right(
    name: str, interface: str, fields: dict[str, object], lines: list[str]
) -> None:
    (step,) = steps(SITE, LAB, changed(complete(), name, interface, **fields))
    assert step.lines == {name: tuple(lines)}


def test_an_end_that_leads_elsewhere_is_replaced() -> None:
    loose, cable = steps(SITE, LAB, changed(complete(), "master-0", "eth0", peer_index=99))
    assert loose.loose == "master-0"
    assert cable.lines[NETWORK][0] == f"link delete {port_of(SITE.masters[0])}"


def test_a_setting_the_kernel_does_not_have_is_not_missed() -> None:
    facts = complete()
    without = dataclasses.replace(facts, settings={**facts.settings, "net/bridge/bridge-nf-call-iptables": None})
    assert steps(SITE, LAB, without) == []


def test_machines_that_are_not_here_have_nothing_here(tmp_path: Path) -> None:
    elsewhere = tuple(dataclasses.replace(machine, provider=Provider.LIBVIRT) for machine in SITE.machines)
    helper = dataclasses.replace(SITE.helper, provider=Provider.LIBVIRT)
    wide = dataclasses.replace(SITE.lab, nat=True)
    site = dataclasses.replace(SITE, machines=elsewhere, helper=helper, lab=wide)
    network = Network(site, LAB, Journal(tmp_path / "journal"))
    assert network.plan() == network.build() == []


def with_lab(cidr: str) -> Site:
    return dataclasses.replace(SITE, lab=dataclasses.replace(SITE.lab, cidr=IPv4Network(cidr)))


def test_the_way_out_keeps_clear_of_the_sites_networks_and_of_the_hosts_loopback() -> None:
    assert nat.range_for(SITE) == IPv4Network("10.0.2.0/24")
    assert nat.range_for(with_lab("10.0.0.0/16")) == IPv4Network("172.31.254.0/24")
    with pytest.raises(FalseworkError, match="no range is left"):
        nat.range_for(with_lab("0.0.0.0/0"))
    assert "--disable-host-loopback" in nat.command(SITE, Path("/run/netns/x"))
