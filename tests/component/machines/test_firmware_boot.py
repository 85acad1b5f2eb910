"""A machine boots over the network: real DHCP, TFTP and DNS, a config server, and the release's own Ignition."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from firmware_lab import (
    HELPER,
    MACHINE_CONFIG_URL,
    MASTER,
    SITE,
    Boot,
    FirmwareLab,
    firmware_lab,
    listens,
    running_in,
    write_certificate,
)

from eventually import eventually
from falsework.assets.ignition import File, Unit, config
from falsework.host import packages
from falsework.release.inventory import Release
from falsework.site.ports import BOOT_HTTP, MACHINE_CONFIG_SERVER

FICKLE_SERVER = Path(__file__).parent / "fickle_dhcp_server.py"
POINTER = f"ignition/machines/{MASTER.name}.ign"
POINTER_URL = f"http://{HELPER}:{BOOT_HTTP}/{POINTER}"
BOOT_CONFIG = f"pxelinux.cfg/01-{MASTER.mac.replace(':', '-')}"
SECRET = "the-key-nobody-may-see"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB test"
UNIT = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
MASTER_CONFIG = config(
    files=[File("/etc/falsework/key", SECRET.encode(), 0o600)],
    units=[Unit("hello.service", UNIT, enabled=True)],
    ssh_keys={"core": [SSH_KEY]},
)

_numbers = itertools.count()


@pytest.fixture
def lab(release: Release, beside_cache: Path) -> Iterator[FirmwareLab]:
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["dnsmasq", "ip", "nft"], print)
    folder = beside_cache / f"firmware-{next(_numbers)}"
    folder.mkdir()
    with firmware_lab(folder, release.os_root) as lab:
        yield lab
    eventually(lambda: not running_in(folder), f"left behind: {running_in(folder)}")
    assert not list(folder.glob("machine-*/*.initramfs"))


def assert_booted_as_told(last: dict[str, Any], upper: Path) -> None:
    assert last.get("booted") == {
        "address": str(MASTER.address),
        "prefix_length": SITE.lab.cidr.prefixlen,
        "router": str(SITE.lab.gateway),
        "name_servers": [HELPER],
        "search": [SITE.domain],
        "hostname": SITE.fqdn(MASTER),
        "server": HELPER,
        "next_server": HELPER,
        "boot_file": "pxelinux.0",
        "seconds": 4 * 3600,
    }, last
    assert last["mounted"] == 1, "only its root is mounted when the boot is done"
    key = upper / "etc/falsework/key"
    assert (key.read_text(), key.stat().st_mode & 0o777) == (SECRET, 0o600)
    assert any(line.startswith("core:") for line in (upper / "etc/passwd").read_text().splitlines())
    assert (upper / "home/core/.ssh/authorized_keys.d/ignition").read_text().strip() == SSH_KEY
    assert (upper / "etc/systemd/system/hello.service").read_text() == UNIT
    assert "enable hello.service" in (upper / "etc/systemd/system-preset/20-ignition.preset").read_text()
    assert (upper / "etc/.ignition-result.json").exists()


def test_a_machine_boots_over_the_network(lab: FirmwareLab) -> None:
    lab.serve(POINTER, MASTER_CONFIG)
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        last = boot.end()
        assert_booted_as_told(last, boot.upper)
        assert boot.says("TFTP", BOOT_CONFIG, HELPER)
        assert boot.says("pxelinux", "ignition.firstboot", f"ignition.config.url={POINTER_URL}")
        assert boot.says("Ignition", POINTER_URL, "OK")
        assert boot.says("Ignition: done")
        assert SECRET not in boot.output
        assert (boot.upper / "etc/resolv.conf").read_text() == f"search {SITE.domain}\nnameserver {HELPER}\n"
        assert (boot.upper / "etc/hostname").read_text() == f"{SITE.fqdn(MASTER)}\n"
        addresses = json.loads(lab.client.run("ip", "-json", "-4", "address", "show", "dev", "eth0"))
        assert [(found["local"], found["prefixlen"]) for found in addresses[0]["addr_info"]] == [
            (str(MASTER.address), SITE.lab.cidr.prefixlen)
        ]
        assert f"default via {SITE.lab.gateway}" in lab.client.run("ip", "route")
        print(f"\nnetwork boot: {last['at']} s, {last['cpu']} CPU s")


def test_what_the_config_says_of_name_and_resolver_stays(lab: FirmwareLab) -> None:
    own = {"/etc/hostname": b"own\n", "/etc/resolv.conf": b"nameserver 192.0.2.1\n"}
    lab.serve(POINTER, config(files=[File(path, content) for path, content in own.items()]))
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        assert "booted" in boot.end()
        assert {path: (boot.upper / path.lstrip("/")).read_bytes() for path in own} == own


def test_an_unknown_machine_gets_nothing_and_says_what_it_waits_for(lab: FirmwareLab) -> None:
    with lab.dnsmasq(), lab.switched_on("52:54:00:00:00:01") as boot:
        eventually(lambda: boot.says("DHCP: nobody gives 52:54:00:00:00:01 an address, asked 3 times"), boot.output)
        assert not boot.says("TFTP")
    assert (lab.folder / "leases").read_text() == ""


def test_a_dhcp_server_that_comes_late_is_found(lab: FirmwareLab) -> None:
    lab.serve(POINTER, MASTER_CONFIG)
    with lab.config_server(), lab.switched_on() as boot:
        time.sleep(2)
        with lab.dnsmasq():
            assert_booted_as_told(boot.end(), boot.upper)


def test_a_cable_that_is_plugged_in_late(lab: FirmwareLab) -> None:
    lab.serve(POINTER, MASTER_CONFIG)
    lab.server.run("ip", "link", "set", "lab0", "down")
    with lab.switched_on() as boot:
        eventually(lambda: boot.says("DHCP: nobody gives"), boot.output)
        lab.server.run("ip", "link", "set", "lab0", "up")
        with lab.dnsmasq(), lab.config_server():
            assert_booted_as_told(boot.end(), boot.upper)


def test_every_third_packet_is_lost(lab: FirmwareLab) -> None:
    lab.serve(POINTER, MASTER_CONFIG)
    # More than one TFTP block of 1432 bytes.
    with (lab.tftp / BOOT_CONFIG).open("a") as file:
        file.write("# nothing\n" * 500)
    losing = "udp dport != 53 udp sport != 53 numgen inc mod 3 0 drop"
    for hook in ("input", "output"):
        lab.server.run("nft", "add", "table", "inet", hook)
        lab.server.run("nft", f"add chain inet {hook} losing {{ type filter hook {hook} priority 0; }}")
        lab.server.run("nft", f"add rule inet {hook} losing {losing}")
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        assert_booted_as_told(boot.end(), boot.upper)


def test_a_server_that_takes_its_offer_back_and_talks_nonsense(lab: FirmwareLab) -> None:
    enough = lab.folder / "enough"
    words = (sys.executable, FICKLE_SERVER, "lab0", HELPER, MASTER.address, enough)
    with lab.server.daemon(*map(str, words), log=lab.folder / "fickle.log"), lab.switched_on() as boot:
        for whim in ("refused it", "said no more"):
            told = f"{HELPER} offered {MASTER.address}, then {whim}; asking anew"
            eventually(lambda told=told: boot.says(told), boot.output)  # type: ignore[misc]
        enough.touch()
        eventually(lambda: boot.says(f"DHCP: {HELPER} gave {MASTER.address}/24"), boot.output)
        eventually(lambda: boot.says(f"TFTP: {HELPER} does not answer, asked 2 times"), boot.output)


def test_the_search_for_a_boot_config_goes_on_to_the_one_for_all(lab: FirmwareLab) -> None:
    lab.serve(POINTER, MASTER_CONFIG)
    (lab.tftp / BOOT_CONFIG).rename(lab.tftp / "pxelinux.cfg/default")
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        assert_booted_as_told(boot.end(), boot.upper)
    for name in (BOOT_CONFIG, "pxelinux.cfg/C0A87E65", "pxelinux.cfg/C0A8", "pxelinux.cfg/C"):
        assert boot.says(f"has no {name}")


def test_a_machine_without_a_boot_config_says_so(lab: FirmwareLab) -> None:
    (lab.tftp / BOOT_CONFIG).unlink()
    with lab.dnsmasq(), lab.switched_on() as boot:
        assert f"{HELPER} has no boot config for {MASTER.mac}" in boot.end()["error"]


def test_a_refused_config_is_a_clear_sentence(lab: FirmwareLab) -> None:
    lab.serve(POINTER, MASTER_CONFIG)
    (lab.http / "forbidden").write_text(f"/{POINTER}\n")
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        assert f"Ignition got no config: {POINTER_URL} answers: Forbidden" in boot.end()["error"]


def test_a_failure_shows_its_reason_and_no_secret(lab: FirmwareLab) -> None:
    clash = {"path": "/etc/passwd", "overwrite": False, "contents": {"source": "data:,x"}}
    lab.serve(POINTER, {**MASTER_CONFIG, "storage": {"files": [*MASTER_CONFIG["storage"]["files"], clash]}})
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        error = boot.end()["error"]
    assert "Ignition failed in its files stage" in error
    assert "/etc/passwd" in error
    assert SECRET not in boot.output


def test_a_config_for_disks_is_refused(lab: FirmwareLab) -> None:
    disk = {"device": "/dev/vda", "wipeTable": True}
    lab.serve(POINTER, {**config(), "storage": {"disks": [disk]}})
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        assert "sets up disks, and this machine has no disk" in boot.end()["error"]


def ignitions(boot: Boot) -> set[int]:
    """Usually one, and none between two of them."""
    return {pid for pid, words in running_in(boot.upper.parent).items() if words.startswith("/usr/bin/ignition")}


@contextlib.contextmanager
def waiting_for_its_config(lab: FirmwareLab) -> Iterator[tuple[Boot, Path]]:
    """A machine whose first config is there, and the one that comes from the Machine Config Server is not."""
    certificate = write_certificate(lab.folder / "pem")
    lab.serve("config/master", MASTER_CONFIG)
    lab.serve(POINTER, config(merge=[MACHINE_CONFIG_URL], authorities=[certificate]))
    with lab.dnsmasq(), lab.config_server(), lab.switched_on() as boot:
        refused = (f"GET {MACHINE_CONFIG_URL}: connection refused, tried 2 times",)
        eventually(lambda: boot.says(*refused), boot.output)
        yield boot, lab.folder / "pem"


def test_a_machine_config_server_that_comes_up_later_is_found(lab: FirmwareLab) -> None:
    with waiting_for_its_config(lab) as (boot, certificate):
        # Left to itself, Ignition would soon ask every 5 s only: it is started anew instead.
        first = ignitions(boot)
        eventually(lambda: bool(ignitions(boot) - first), "it is not started anew")
        with lab.config_server(MACHINE_CONFIG_SERVER, certificate):
            eventually(lambda: listens(lab.server, MACHINE_CONFIG_SERVER), "the server does not start")
            up = time.monotonic()
            eventually(lambda: boot.says(MACHINE_CONFIG_URL, "OK, after"), boot.output)
            print(f"\nfound {time.monotonic() - up:.2f} s after it was up")
            assert_booted_as_told(boot.end(), boot.upper)


def test_a_machine_that_is_switched_off_while_it_waits_leaves_nothing(lab: FirmwareLab) -> None:
    with waiting_for_its_config(lab) as (boot, _):
        folder = boot.upper.parent
        assert running_in(folder)
        os.kill(boot.pid, signal.SIGKILL)
        eventually(lambda: not running_in(folder), "something runs on")
        # The next power-on uses the same folder again.
        left = folder / "root.initramfs"
        assert not left.exists() or list(left.iterdir()) == []
        left.rmdir()


def test_a_machine_boots_from_a_file(lab: FirmwareLab) -> None:
    file = lab.folder / "helper.ign"
    file.write_text(json.dumps(MASTER_CONFIG))
    with lab.switched_on(config=file) as boot:
        last = boot.end()
        assert last.get("booted") == {}, last
        assert (boot.upper / "etc/falsework/key").read_text() == SECRET
        assert SECRET not in boot.output
        assert f"{HELPER}/24" in lab.client.run("ip", "address", "show", "dev", "eth0")


def test_a_file_that_is_no_config_is_a_clear_sentence(lab: FirmwareLab) -> None:
    file = lab.folder / "helper.ign"
    file.write_text("{}")
    with lab.switched_on(config=file) as boot:
        assert "Ignition failed in its fetch stage" in boot.end()["error"]
