"""The real servers with the rendered configuration, asked what clients ask."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helper_namespace import Namespace, cable

from eventually import PATIENCE, eventually
from falsework.helper.render import dhcpd, dnsmasq, kea
from falsework.host import packages
from falsework.site.load import default_site
from falsework.site.model import Site
from falsework.site.records import everyone

SITE = default_site()
DOMAIN = SITE.domain
HELPER = str(SITE.helper.address)
PROBE = Path(__file__).parent / "dhcp_probe.py"


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["dnsmasq", "dhcpd", "kea-dhcp4", "dig", "ip"], print)


@contextlib.contextmanager
def running(server: str, namespace: Namespace, folder: Path, machines: str = "") -> Iterator[subprocess.Popen[bytes]]:
    config, leases, log = folder / "config", folder / "leases", folder / "log"
    leases.touch()
    if server == "dnsmasq":
        (folder / "tftp").mkdir()
        config.write_text(dnsmasq.render(SITE, str(folder / "tftp"), machines))
        options = ("--pid-file=", f"--dhcp-leasefile={leases}", "--user=root", "--log-facility=-")
        words: tuple[str | Path, ...] = ("dnsmasq", "--keep-in-foreground", "-C", config, *options)
    elif server == "dhcpd":
        config.write_text(dhcpd.render(SITE))
        words = ("dhcpd", "-f", "-d", "-4", "-cf", config, "-lf", leases, "-pf", folder / "pid", "lab0")
    else:
        text = kea.render(SITE)
        data = json.loads(text)
        data["Dhcp4"]["lease-database"]["persist"] = False
        config.write_text(json.dumps(data))
        words = ("env", f"KEA_PIDFILE_DIR={folder}", f"KEA_LOCKFILE_DIR={folder}", "kea-dhcp4", "-c", config)
    with namespace.daemon(*words, log=log) as child:
        yield child
        assert child.poll() is None, log.read_text()


# DNS, with the machines in files of their own, as the helper has it


@pytest.fixture(scope="module")
def resolver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    folder = tmp_path_factory.mktemp("dnsmasq")
    write_machines(SITE, folder)
    with cable(SITE) as (server, _), running("dnsmasq", server, folder, str(folder)):
        ask = f"dig @{HELPER} +tries=1 +time=1 {SITE.api_host} || true"
        eventually(lambda: "NOERROR" in server.run("sh", "-c", ask))
        yield server


def write_machines(site: Site, folder: Path) -> None:
    for name, text in dnsmasq.machine_files(site).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def dig(resolver: Namespace, *words: str) -> list[str]:
    return sorted(resolver.run("dig", f"@{HELPER}", "+short", "+tries=1", "+time=60", *words).splitlines())


def status(resolver: Namespace, *words: str) -> str:
    said = resolver.run("dig", f"@{HELPER}", "+tries=1", "+time=60", *words)
    return said.partition("status: ")[2].partition(",")[0]


def test_forward(resolver: Namespace) -> None:
    for machine in everyone(SITE):
        assert dig(resolver, SITE.fqdn(machine)) == [str(machine.address)]
    for name in (SITE.api_host, SITE.api_int_host):
        assert dig(resolver, name) == [str(SITE.api_vip)]
    for index, machine in enumerate(SITE.masters):
        assert dig(resolver, f"etcd-{index}.{DOMAIN}") == [str(machine.address)]


def test_reverse_has_one_name_each(resolver: Namespace) -> None:
    for machine in everyone(SITE):
        assert dig(resolver, "-x", str(machine.address)) == [f"{SITE.fqdn(machine)}."]


def test_wildcard(resolver: Namespace) -> None:
    for name in ("console-openshift-console", "a.b.c"):
        assert dig(resolver, f"{name}.{SITE.apps_domain}") == [str(SITE.ingress_vip)]


def test_srv(resolver: Namespace) -> None:
    assert dig(resolver, "-t", "srv", f"_etcd-server-ssl._tcp.{DOMAIN}") == [
        f"0 10 2380 etcd-{index}.{DOMAIN}." for index in range(3)
    ]


@pytest.mark.parametrize(
    "words",
    [
        (f"nobody.{DOMAIN}",),
        (f"nobody.api.{DOMAIN}",),
        ("www.example.com",),
        ("www.example.com", "AAAA"),
        ("www.example.com", "MX"),
        ("-x", "192.168.126.77"),
        ("-x", "192.168.77.77"),
        ("-x", "8.8.8.8"),
    ],
)
def test_what_is_not_there_is_said_not_to_be_without_asking_others(resolver: Namespace, words: tuple[str, ...]) -> None:
    # Had it been passed on, there would be no answer at all: nobody is there to be asked.
    assert status(resolver, *words) == "NXDOMAIN"


@pytest.mark.parametrize("name", [SITE.api_host, f"x.{SITE.apps_domain}", SITE.fqdn(SITE.masters[0])])
def test_there_is_no_ipv6_address_and_no_error(resolver: Namespace, name: str) -> None:
    assert status(resolver, name, "AAAA") == "NOERROR"
    assert dig(resolver, name, "AAAA") == []


def test_a_machine_is_forgotten_without_a_question_that_goes_unanswered(tmp_path: Path) -> None:
    write_machines(SITE, tmp_path)
    gone = SITE.fqdn(SITE.bootstrap)
    with cable(SITE) as (server, _), running("dnsmasq", server, tmp_path, str(tmp_path)):
        eventually(lambda: "NOERROR" in server.run("sh", "-c", f"dig @{HELPER} +tries=1 +time=1 {gone} || true"))
        write_machines(SITE.without_bootstrap(), tmp_path)
        # A lost question would make dig fail: it asks once.
        eventually(lambda: dig(server, SITE.api_host) == [str(SITE.api_vip)] and status(server, gone) == "NXDOMAIN")
        assert dig(server, SITE.fqdn(SITE.masters[0])) == [str(SITE.masters[0].address)]


# DHCP


@pytest.fixture(scope="module", params=["dnsmasq", "dhcpd", "kea"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    with cable(SITE) as (server, client), running(request.param, server, tmp_path_factory.mktemp(request.param)):
        deadline = time.monotonic() + PATIENCE
        while offer(client, SITE.bootstrap.mac, seconds=1) is None:
            assert time.monotonic() < deadline
        yield client


def offer(client: Namespace, mac: str, *options: str, seconds: float = 60) -> dict[str, str] | None:
    found: dict[str, str] | None = json.loads(
        client.run(sys.executable, PROBE, "eth0", mac, str(seconds), *options, timeout=seconds + 120)
    )
    return found


def test_every_machine_is_offered_its_own_address_and_name(client: Namespace) -> None:
    for machine in SITE.machines:
        found = offer(client, machine.mac)
        assert found == {
            "address": str(machine.address),
            "server": HELPER,
            "file": "pxelinux.0",
            "name": SITE.fqdn(machine),
            "domain": DOMAIN,
            "routers": SITE.lab.gateway.packed.hex(),
            "dns": SITE.helper.address.packed.hex(),
        }


def test_an_unknown_machine_is_offered_nothing(client: Namespace) -> None:
    assert offer(client, "52:54:00:00:00:01", seconds=2) is None


@pytest.mark.parametrize(
    ("options", "file"),
    [
        (("93=0000",), "pxelinux.0"),
        (("93=0000", "175=010101"), "pxelinux.0"),
        (("93=0007",), "ipxe.efi"),
        (("93=0009",), "ipxe.efi"),
        (("93=0007", "175=010101"), "boot.ipxe"),
        (("93=0009", "175=010101"), "boot.ipxe"),
    ],
)
def test_the_boot_file_is_that_of_the_firmware(client: Namespace, options: tuple[str, ...], file: str) -> None:
    found = offer(client, SITE.masters[0].mac, *options)
    assert found is not None
    assert (found["file"], found["server"]) == (file, HELPER)
