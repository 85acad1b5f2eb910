"""A machine boots with the real Ignition: its pointer by plain HTTP, its config by TLS through HAProxy."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventually import eventually
from mcs_process import ConfigServer, config_server

sys.path.append(str(Path(__file__).parents[1] / "machines"))
sys.path.append(str(Path(__file__).parents[1] / "helper"))
from firmware_lab import MASTER, SITE, FirmwareLab, firmware_lab
from helper_namespace import namespace

from falsework.assets.catalogue import Step, create
from falsework.assets.ignition_configs import machine_asset
from falsework.helper.boot import config_path
from falsework.helper.render import haproxy
from falsework.host import packages
from falsework.release.inventory import Release
from falsework.site.model import Machine
from falsework.site.ports import MACHINE_CONFIG_SERVER

WORKER = SITE.workers[0]


@pytest.fixture
def lab(release: Release, beside_cache: Path) -> Iterator[FirmwareLab]:
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["dnsmasq", "haproxy", "ip"], print)
    folder = beside_cache / "mcs-ignition"
    folder.mkdir(exist_ok=True)
    with firmware_lab(folder, release.os_root) as lab:
        create(SITE, lab.folder / "assets", Step.ALL)
        for machine in (MASTER, WORKER):
            lab.serve(_pointer(machine), json.loads((lab.folder / "assets" / machine_asset(machine)).read_bytes()))
        yield lab


def _pointer(machine: Machine) -> str:
    return f"ignition/{config_path(SITE, machine)}"


@contextlib.contextmanager
def control_plane(lab: FirmwareLab) -> Iterator[ConfigServer]:
    """The bootstrap machine at another cable of the helper's, and the load balancer in between."""
    config, address = lab.folder / "haproxy.cfg", str(SITE.bootstrap.address)
    config.write_text(haproxy.render(SITE, str(lab.folder / "admin.sock")))
    with namespace() as bootstrap:
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(bootstrap.holder))
        lab.server.run("ip", "link", "add", "boot0", *peer)
        lab.server.run("ip", "link", "set", "boot0", "up")
        lab.server.run("ip", "route", "add", address, "dev", "boot0", "src", str(SITE.helper.address))
        bootstrap.run("ip", "address", "add", f"{address}/{SITE.lab.cidr.prefixlen}", "dev", "eth0")
        bootstrap.run("ip", "link", "set", "eth0", "up")
        with (
            lab.server.daemon("haproxy", "-db", "-f", config, log=lab.folder / "haproxy.log"),
            config_server(
                SITE, lab.folder / "assets", address, MACHINE_CONFIG_SERVER, around=tuple(bootstrap.words(()))
            ) as server,
        ):
            yield server


def test_a_master_has_its_own_join_credential_when_ignition_is_done(lab: FirmwareLab) -> None:
    pointer = (lab.http / _pointer(MASTER)).read_bytes()
    with lab.dnsmasq(), lab.config_server(), control_plane(lab) as server, lab.switched_on() as boot:
        last = boot.end()
        assert "booted" in last, last
        kubeconfig = boot.upper / "etc/kubernetes/kubeconfig"
        expected = (server.configs / "join" / f"{SITE.fqdn(MASTER)}.kubeconfig").read_bytes()
        assert kubeconfig.read_bytes() == expected
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        assert b"client-key-data" in expected
        assert json.loads(pointer)["ignition"]["config"]["merge"]
        assert b"/etc/kubernetes/kubeconfig" not in pointer
        given = json.loads((boot.upper / "etc/mcs-machine-config-content.json").read_bytes())
        annotations = json.loads((boot.upper / "etc/machine-config-daemon/node-annotations.json").read_bytes())
        assert annotations["machineconfiguration.openshift.io/currentConfig"] == given["metadata"]["name"]
        eventually(lambda: list(server.served()) == [SITE.fqdn(MASTER)], "it is not noted")
        assert [line["machine"] for line in server.lines()] == [SITE.fqdn(MASTER)]
        assert "BEGIN" not in boot.output


def test_a_worker_waits_for_as_long_as_only_the_bootstrap_serves(lab: FirmwareLab) -> None:
    with lab.dnsmasq(), lab.config_server(), control_plane(lab) as server, lab.switched_on(WORKER.mac) as boot:
        eventually(lambda: len(server.lines()) >= 2, boot.output)
        assert {(line["machine"], line["status"]) for line in server.lines()} == {(SITE.fqdn(WORKER), 500)}
        assert "booted" not in boot.output
        assert not (boot.upper / "etc/kubernetes/kubeconfig").exists()
