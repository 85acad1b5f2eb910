"""A pod behind its node's address, with the node's own rules and without them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcs_process import ConfigServer, config_server

sys.path.append(str(Path(__file__).parents[1] / "helper"))
from helper_namespace import Namespace, cable, namespace

from falsework.assets import node
from falsework.host import packages
from falsework.site import ports
from falsework.site.load import default_site

SITE = default_site()
MASTER = SITE.masters[0]
SERVER = str(SITE.helper.address)
PORT = ports.MACHINE_CONFIG_SERVER


@dataclass(frozen=True)
class Pods:
    node: Namespace
    pod: Namespace
    server: ConfigServer

    def status(self, place: Namespace) -> str:
        words = (
            *("curl", "--silent", "--max-time", "60", "--output", "/dev/null", "--write-out", "%{http_code}"),
            *("--cacert", self.server.authority, "--resolve", f"{self.server.host}:{PORT}:{SERVER}"),
            f"https://{self.server.host}:{PORT}/config/master",
        )
        return subprocess.run(place.words(words), capture_output=True, text=True, check=False).stdout


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["ip", "nft"], print)
    with cable(SITE) as (server, master), namespace() as pod:
        master.run("ip", "address", "add", f"{MASTER.address}/{SITE.lab.cidr.prefixlen}", "dev", "eth0")
        master.run("ip", "link", "add", "pod0", "type", "veth", "peer", "name", "eth0", "netns", str(pod.holder))
        master.run("ip", "address", "add", "10.128.0.1/24", "dev", "pod0")
        master.run("ip", "link", "set", "pod0", "up")
        master.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        masquerade = "add chain ip pods out { type nat hook postrouting priority 100; }"
        master.run("nft", "add table ip pods")
        master.run("nft", masquerade)
        master.run("nft", "add rule ip pods out ip saddr 10.128.0.0/14 oifname eth0 masquerade")
        pod.run("ip", "address", "add", "10.128.0.7/24", "dev", "eth0")
        pod.run("ip", "link", "set", "eth0", "up")
        pod.run("ip", "route", "add", "default", "via", "10.128.0.1")
        around = tuple(server.words(()))
        with config_server(SITE, tmp_path / "assets", SERVER, PORT, around=around) as running:
            yield Pods(master, pod, running)


def test_a_pod_does_not_pass_for_its_node(pods: Pods, tmp_path: Path) -> None:
    # That is why there are rules.
    assert pods.status(pods.pod) == "200"
    rules, unit = node.pod_guard()
    file = tmp_path / "rules"
    file.write_bytes(rules.content)
    assert f"nft --file {rules.path}" in str(unit.contents)
    for _ in range(2):
        pods.node.run("nft", "--file", file)
        assert pods.status(pods.pod) == "000"
        assert pods.status(pods.node) == "200"
