"""Real dnsmasq and the real boot server, asked by a machine and by a stranger; the ledger says what happened."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from boot_server_process import boot_server
from helper_namespace import cable

from eventually import eventually
from falsework.helper import boot, ledger
from falsework.helper.boot_server_files import UNIT as BOOT_SERVER_UNIT
from falsework.helper.ledger_entry import LedgerEntry, Service
from falsework.helper.render import dnsmasq
from falsework.host import packages
from falsework.site.load import default_site
from falsework.site.ports import BOOT_HTTP

SITE = default_site()
HELPER = str(SITE.helper.address)
MACHINE, OTHER = SITE.masters[:2]
STRANGER = "192.168.126.77"
STRANGERS_MAC = "02:00:00:00:00:99"
PROBE = Path(__file__).parent / "dhcp_probe.py"


def journal(**logs: Path) -> Iterator[str]:
    """As journalctl gives it, of what the daemons printed."""
    units = {"dnsmasq": ledger.DNSMASQ_UNIT, "boot_server": BOOT_SERVER_UNIT}
    for name, path in logs.items():
        for line in path.read_text().splitlines():
            yield json.dumps(
                {"__REALTIME_TIMESTAMP": "1900000000000000", "_SYSTEMD_UNIT": units[name], "MESSAGE": line}
            )


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[LedgerEntry]:
    """A machine boots, tries for another's config, and a stranger tries for both."""
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["dnsmasq", "dig", "ip"], print)
    folder = tmp_path_factory.mktemp("ledger")
    tftp = folder / "tftp"
    tftp.mkdir()
    (tftp / boot.BIOS_LOADER).write_bytes(b"loader")
    config, log = folder / "dnsmasq.conf", folder / "dnsmasq.log"
    config.write_text(dnsmasq.render(SITE, str(tftp)))
    with cable(SITE) as (server, client):
        options = ("--pid-file=", f"--dhcp-leasefile={folder / 'leases'}", "--user=root", "--log-facility=-")
        around = tuple(server.words(()))
        with (
            server.daemon("dnsmasq", "--keep-in-foreground", "-C", config, *options, log=log),
            boot_server(SITE, around=around, address=HELPER, port=BOOT_HTTP) as boots,
        ):
            (boots.public / "falsework" / "kernel").write_bytes(b"kernel")
            boots.expect(MACHINE.name)
            eventually(lambda: "cleared cache" in log.read_text(), "dnsmasq does not start")
            client.run(sys.executable, PROBE, "eth0", STRANGERS_MAC, "1")
            client.run(sys.executable, PROBE, "eth0", MACHINE.mac, "60")
            client.run("ip", "address", "add", f"{STRANGER}/{SITE.lab.cidr.prefixlen}", "dev", "eth0")
            client.run("ip", "address", "add", f"{MACHINE.address}/32", "dev", "eth0")
            for name in (boot.BIOS_LOADER, "missing"):
                words = f"curl -s --interface {MACHINE.address} -o /dev/null tftp://{HELPER}/{name} || true"
                client.run("sh", "-c", words)
            # Once: who asks again is in the ledger again.
            once = ("+tries=1", "+time=60")
            client.run("dig", *once, "-b", str(MACHINE.address), f"@{HELPER}", SITE.api_host)
            client.run("dig", *once, "-b", STRANGER, f"@{HELPER}", f"nobody.{SITE.domain}")
            for address in (str(MACHINE.address), STRANGER):
                for path in (f"ignition/machines/{MACHINE.name}.ign", f"ignition/machines/{OTHER.name}.ign"):
                    url = f"{boot.base_url(SITE)}/{path}"
                    client.run("curl", "-s", "--interface", address, "-o", os.devnull, url)
            eventually(lambda: len(boots.lines()) == 4, "requests are missing")
            # What it prints is buffered nowhere, and the root below which files are named is the test's own.
            text = log.read_text().replace(str(tftp), boot.TFTP_ROOT)
            log.write_text(text)
            return list(ledger.read(journal(dnsmasq=log, boot_server=boots.log), SITE))


def of(entries: list[LedgerEntry], service: Service) -> list[tuple[str, str, str, str]]:
    return [
        (entry.machine or entry.client, entry.asked, entry.got, entry.because)
        for entry in entries
        if entry.service is service
    ]


def test_dhcp(entries: list[LedgerEntry]) -> None:
    assert of(entries, Service.DHCP) == [
        (STRANGERS_MAC, "DHCPDISCOVER", "", "no machine of the site has this MAC"),
        (MACHINE.name, "DHCPDISCOVER", f"{MACHINE.address}, boot file {boot.BIOS_LOADER}", ""),
    ]


def test_tftp(entries: list[LedgerEntry]) -> None:
    assert of(entries, Service.TFTP) == [
        (MACHINE.name, boot.BIOS_LOADER, "it", ""),
        (MACHINE.name, "missing", "", "there is no such file"),
    ]


def test_dns(entries: list[LedgerEntry]) -> None:
    assert of(entries, Service.DNS) == [
        (MACHINE.name, f"A {SITE.api_host}", HELPER, ""),
        (STRANGER, f"A nobody.{SITE.domain}", "", "there is no such name"),
    ]


def test_one_machine_asking_for_the_config_of_another_is_refused_and_in_the_ledger(entries: list[LedgerEntry]) -> None:
    own, others = (f"GET /ignition/machines/{machine.name}.ign" for machine in (MACHINE, OTHER))
    found = of(entries, Service.HTTP)
    assert (found[0][0], found[0][1], found[0][3]) == (MACHINE.name, own, "")
    assert found[0][2].startswith("200, ")
    whose = f"403: that is the config of {OTHER.name}; {MACHINE.name} gets machines/{MACHINE.name}.ign alone"
    stranger = "403: the address belongs to no machine of the site"
    assert found[1:] == [
        (MACHINE.name, others, "", whose),
        (STRANGER, own, "", stranger),
        (STRANGER, others, "", stranger),
    ]
