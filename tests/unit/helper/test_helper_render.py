"""What must hold in every rendered file, whatever the site."""

from __future__ import annotations

import json
import re
from datetime import date
from ipaddress import IPv4Address
from xml.etree import ElementTree as ET

import pytest
from helper_samples import TODAY, alchemy, arm, mainframe, moved, rich, sites, without_workers
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.errors import UsageError
from falsework.helper.boot import boot_of
from falsework.helper.openings import openings
from falsework.helper.render import (
    FORMATS,
    as_one_text,
    bind,
    dhcpd,
    dnsmasq,
    exports,
    firewalld,
    haproxy,
    kea,
    libvirt_net,
    nftables,
    pxe,
    render,
)
from falsework.site.load import default_site
from falsework.site.model import Site
from falsework.site.ports import ports_of
from falsework.site.records import dns_records, reverse_names, reverse_zone_name, reverse_zones

SITES = sites()


def lines(text: str, start: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith(start)]


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Site:
    return SITES[request.param]


@pytest.mark.parametrize("name", FORMATS)
def test_every_file_has_whole_lines_and_a_path_below_its_folder(site: Site, name: str) -> None:
    for path, text in render(name, site, TODAY).items():
        assert text.endswith("\n")
        assert not re.search(r"[ \t]+$", text, re.MULTILINE)
        assert not path.startswith("/")
        assert ".." not in path


# Names


def test_every_address_has_one_name_in_reverse(site: Site) -> None:
    pointers = [record.name for record in dns_records(site) if record.kind == "PTR"]
    assert len(pointers) == len(set(pointers)) == len(reverse_names(site))


def test_every_record_is_in_exactly_one_zone(site: Site) -> None:
    zones = [text for path, text in bind.render(site, 1).items() if path.endswith(".zone")]
    written = [line for zone in zones for line in zone.splitlines() if re.search(r" IN (A|PTR|SRV) ", line)]
    assert len(written) == len(dns_records(site))


@pytest.mark.parametrize(
    ("cidr", "zones"),
    [
        ("10.0.0.0/8", ["10.in-addr.arpa"]),
        ("172.20.0.0/16", ["20.172.in-addr.arpa"]),
        ("192.168.7.0/24", ["7.168.192.in-addr.arpa"]),
        ("192.168.7.64/27", ["7.168.192.in-addr.arpa"]),
        ("192.168.6.0/23", ["6.168.192.in-addr.arpa", "7.168.192.in-addr.arpa"]),
    ],
)
def test_reverse_zones_end_at_whole_bytes(cidr: str, zones: list[str]) -> None:
    assert [reverse_zone_name(zone) for zone in reverse_zones(moved(cidr))] == zones


def test_a_reverse_zone_larger_than_the_network_says_so() -> None:
    assert "answers for all of that" in bind.render(moved("192.168.7.64/27"), 1)["7.168.192.in-addr.arpa.zone"]
    assert "answers for all" not in as_one_text(bind.render(default_site(), 1))


def test_a_load_balancer_of_its_own_has_the_api_name_in_reverse() -> None:
    assert reverse_names(rich())[IPv4Address("192.168.100.5")] == "api.ocp4.alchemy.com"
    assert reverse_names(default_site())[default_site().api_vip] == "helper.lab.falsework.test"


def test_names_outside_are_asked_for_only_where_there_is_someone_to_ask() -> None:
    closed, open_to_one = dnsmasq.render(default_site()), dnsmasq.render(alchemy())
    assert lines(closed, "server=") == []
    assert lines(closed, "address=/#/")
    assert lines(open_to_one, "server=") == ["server=8.8.8.8"]
    assert not lines(open_to_one, "address=/#/")
    assert "recursion no;" in bind.render(default_site(), 1)[bind.CONFIG]
    assert "forwarders { 8.8.8.8; };" in bind.render(alchemy(), 1)[bind.CONFIG]


def test_dnsmasq_reads_the_reverse_name_of_an_address_first(site: Site) -> None:
    first: dict[str, str] = {}
    for line in lines(dnsmasq.render(site), "host-record="):
        name, address = line.removeprefix("host-record=").split(",")
        first.setdefault(address, name)
    assert first == {str(address): name for address, name in reverse_names(site).items()}


# Serials


@settings(deadline=None)
@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(0, 2**32 - 2))
def test_a_serial_always_grows(today: date, previous: int) -> None:
    assert bind.next_serial(today, previous) > previous


def test_a_serial_shows_its_day_and_counts_from_there() -> None:
    assert bind.next_serial(TODAY, None) == 2030010200
    assert bind.next_serial(TODAY, 2029123199) == 2030010200
    assert bind.next_serial(TODAY, 2030010200) == 2030010201
    assert bind.next_serial(TODAY, 2030010299) == 2030010300
    assert bind.next_serial(TODAY, 2031010100) == 2031010101


def test_the_last_serial_is_told() -> None:
    with pytest.raises(UsageError, match="no larger one"):
        bind.next_serial(TODAY, 2**32 - 1)


def test_a_serial_is_found_in_what_people_have() -> None:
    assert bind.serial_in(bind.render(default_site(), 77)["lab.falsework.test.zone"]) == 77
    one_line = "example. 300 IN SOA ns1.example. admin.example. 2024010101 3H 30M 2W 1W\n"
    assert bind.serial_in(one_line) == 2024010101
    several = "; SOA of 1999\n@ IN SOA ns1 admin (\n\t\t2020022400\t; serial\n\t\t3H )\n"
    assert bind.serial_in(several) == 2020022400
    assert bind.serial_in("2019070100\n") == 2019070100
    assert bind.serial_in("no zone at all") is None


# DHCP and boot


def test_all_dhcp_servers_have_the_same_reservations(site: Site) -> None:
    expected = {(machine.mac, str(machine.address), site.fqdn(machine)) for machine in site.machines}
    reserved = json.loads(kea.render(site))["Dhcp4"]["subnet4"][0]["reservations"]
    assert {(entry["hw-address"], entry["ip-address"], entry["hostname"]) for entry in reserved} == expected
    host = re.compile(r'hardware ethernet (\S+);\s+fixed-address (\S+);\s+option host-name "(\S+)";')
    assert set(host.findall(dhcpd.render(site))) == expected
    words = [line.removeprefix("dhcp-host=").split(",") for line in lines(dnsmasq.render(site), "dhcp-host=")]
    options = [line.removeprefix("dhcp-option=").split(",") for line in lines(dnsmasq.render(site), "dhcp-option=tag:")]
    named = {tag.removeprefix("tag:"): name for tag, _, name in options}
    assert {(mac, address, named[tag.removeprefix("set:")]) for mac, tag, address in words} == expected


def test_nobody_else_gets_an_address(site: Site) -> None:
    assert json.loads(kea.render(site))["Dhcp4"]["subnet4"][0]["pools"] == []
    assert "range " not in re.sub(r"#.*", "", dhcpd.render(site))
    assert "deny unknown-clients;" in dhcpd.render(site)
    assert "dhcp-ignore=tag:!known" in dnsmasq.render(site)
    (dhcp_range,) = lines(dnsmasq.render(site), "dhcp-range=")
    assert ",static," in dhcp_range


def test_firmware_is_known_by_its_architecture() -> None:
    assert lines(dnsmasq.render(arm()), "dhcp-match=set:uefi") == ["dhcp-match=set:uefi,option:client-arch,11"]
    assert "00:0b" in dhcpd.render(arm())
    assert "0x000b" in kea.render(arm())
    assert lines(dnsmasq.render(mainframe()), "dhcp-match=set:uefi") == []
    assert "class" not in dhcpd.render(mainframe())


def test_every_machine_finds_its_own_boot_files(site: Site) -> None:
    files = pxe.render(site)
    assert len(files) == 1 + 2 * len(site.machines)
    for machine in site.machines:
        dashed = machine.mac.replace(":", "-")
        arguments = " ".join(boot_of(site, machine).arguments)
        assert arguments in files[f"pxelinux.cfg/01-{dashed}"]
        assert arguments in files[f"ipxe/{dashed}.ipxe"]
        assert f"coreos.live.rootfs_url=http://{site.helper.address}:8080/" in arguments


def test_configs_are_per_machine_here_and_per_role_with_openshift() -> None:
    ours, theirs = default_site(), rich()
    assert "ignition.config.url=http://192.168.126.2:8080/ignition/machines/master-1.ign" in (
        boot_of(ours, ours.masters[1]).arguments
    )
    assert "ignition.config.url=http://192.168.126.2:8080/ignition/bootstrap.ign" in (
        boot_of(ours, ours.bootstrap).arguments
    )
    assert "coreos.inst.ignition_url=http://192.168.100.254:8080/ignition/worker.ign" in (
        boot_of(theirs, theirs.workers[0]).arguments
    )


# Load balancer


def backend(site: Site, name: str) -> str:
    return haproxy.render(site).partition(f"\nbackend {name}\n")[2].partition("\n\n")[0]


@pytest.mark.parametrize("name", ["api", "machine-config-server"])
def test_the_bootstrap_serves_only_while_no_master_does(site: Site, name: str) -> None:
    servers = lines(backend(site, name), "server ")
    assert [line.split()[1] for line in servers] == [machine.name for machine in (*site.masters, site.bootstrap)]
    assert [line.endswith(" backup") for line in servers] == [False] * len(site.masters) + [True]


def test_health_is_what_the_servers_say_over_tls() -> None:
    for name, question in (("api", "GET /readyz"), ("machine-config-server", "GET /healthz")):
        text = backend(default_site(), name)
        assert question in text
        assert "check-ssl verify none inter 2s fastinter 1s downinter 500ms fall 3 rise 1" in text
        assert "stick" not in text
        assert "balance source" not in text


def test_routers_are_on_workers_or_else_on_masters() -> None:
    assert [line.split()[1] for line in lines(backend(default_site(), "ingress-https"), "server ")] == [
        "worker-0",
        "worker-1",
    ]
    assert [line.split()[1] for line in lines(backend(without_workers(), "ingress-http"), "server ")] == [
        "master-0",
        "master-1",
        "master-2",
    ]


# Firewalls, shares, network


def test_both_firewalls_open_exactly_the_same(site: Site) -> None:
    expected = {
        (opening.protocol, ports, str(source))
        for opening in openings(site)
        for ports in opening.ranges
        for source in opening.sources or ("anyone",)
    }
    zone = ET.fromstring(firewalld.render(site))  # noqa: S314 - our own
    found = {(port.get("protocol"), port.get("port"), "anyone") for port in zone.findall("port")}
    for rule in zone.findall("rule"):
        source, port = rule.find("source"), rule.find("port")
        assert source is not None
        assert port is not None
        found.add((port.get("protocol"), port.get("port"), str(source.get("address"))))
    assert found == expected
    in_nftables = set()
    rule_form = re.compile(r"(?:ip saddr (\{.*?\}|\S+) )?(tcp|udp) dport (\{.*?\}|\S+) accept")
    for sources, protocol, ports in rule_form.findall(nftables.render(site)):
        for number in ports.strip("{} ").split(", "):
            in_nftables |= {(protocol, number, source) for source in (sources or "anyone").strip("{} ").split(", ")}
    assert in_nftables == expected


def test_the_helper_opens_nothing_for_a_load_balancer_elsewhere_or_shares_that_are_not_there() -> None:
    here = {number for port in ports_of(default_site(), default_site().helper) for number in port.ranges}
    assert {"6443", "22623", "80", "443", "9000"} <= here
    assert "2049" not in here
    elsewhere = {number for port in ports_of(rich(), rich().helper) for number in port.ranges}
    assert not {"6443", "22623", "80", "443", "9000"} & elsewhere
    assert "2049" in elsewhere


def test_shares_are_open_to_their_clients_and_to_no_network_twice() -> None:
    (nfs,) = [opening for opening in openings(rich()) if "2049" in opening.ranges]
    assert [str(source) for source in nfs.sources] == ["10.0.0.0/8", "192.168.0.0/16"]


def test_exports() -> None:
    assert exports.render(rich()).splitlines()[1:] == [
        "/var/nfs/registry 192.168.100.0/24(rw,sync,no_subtree_check,no_root_squash)",
        "/var/nfs/books 192.168.0.0/16(ro,sync,no_subtree_check,root_squash)",
        "/var/nfs/far 10.0.0.0/8(rw,sync,no_subtree_check,no_root_squash)",
    ]


def test_the_network_of_libvirt_leaves_dhcp_to_the_helper_and_has_nat_only_where_asked(site: Site) -> None:
    network = ET.fromstring(libvirt_net.render(site))  # noqa: S314 - our own
    assert network.find(".//dhcp") is None
    assert (network.find("forward") is not None) == site.lab.nat
    address = network.find("ip")
    assert address is not None
    assert address.get("address") == str(site.lab.gateway)
