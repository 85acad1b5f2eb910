"""The real HAProxy in front of the real Machine Config Server: machines are known through it, and nobody else is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eventually import eventually
from mcs_process import ConfigServer, config_server

sys.path.append(str(Path(__file__).parents[1] / "helper"))
from helper_namespace import Namespace, cable

from falsework.assets.ignition import files_in
from falsework.helper.balancer import Balancer, Status
from falsework.helper.render import haproxy
from falsework.host import packages
from falsework.site import ports
from falsework.site.load import default_site

SITE = default_site()
BOOTSTRAP, FIRST, SECOND = SITE.bootstrap, *SITE.masters[:2]
KUBECONFIG = "/etc/kubernetes/kubeconfig"
STRANGER = str(SITE.lab.cidr[200])
POD = "10.128.0.7"
PORT = ports.MACHINE_CONFIG_SERVER


@dataclass(frozen=True)
class Lab:
    client: Namespace
    server: ConfigServer
    balancer: Balancer

    def curl(self, *words: str, client: str, at: str) -> subprocess.CompletedProcess[bytes]:
        command = (
            *("curl", "--silent", "--max-time", "60", "--interface", client, "--cacert", str(self.server.authority)),
            *(
                "--resolve",
                f"{self.server.host}:{PORT}:{at}",
                *words,
                f"https://{self.server.host}:{PORT}/config/master",
            ),
        )
        return subprocess.run(self.client.words(command), capture_output=True, check=False)

    def status(self, client: str, at: str = str(SITE.helper.address)) -> str:
        return self.curl("--output", "/dev/null", "--write-out", "%{http_code}", client=client, at=at).stdout.decode()

    def masters_count(self) -> bool:
        masters = {machine.name for machine in SITE.masters}
        return any(one.name in masters and one.status is Status.UP for one in self.balancer.state())

    def state(self) -> Status:
        servers = self.balancer.state()
        return next(one.status for one in servers if (one.backend, one.name) == (haproxy.MCS_BACKEND, BOOTSTRAP.name))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The bootstrap machine and all clients are at the other end of the helper's cable."""
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["haproxy", "ip"], print)
    folder = tmp_path_factory.mktemp("balancer")
    config, runtime = folder / "haproxy.cfg", folder / "admin.sock"
    config.write_text(haproxy.render(SITE, str(runtime)))
    with contextlib.ExitStack() as stack:
        helper, client = stack.enter_context(cable(SITE))
        for machine in (BOOTSTRAP, FIRST, SECOND):
            client.run("ip", "address", "add", f"{machine.address}/{SITE.lab.cidr.prefixlen}", "dev", "eth0")
        for address in (STRANGER, POD):
            client.run("ip", "address", "add", f"{address}/32", "dev", "eth0")
        helper.run("ip", "route", "add", "10.128.0.0/14", "dev", "lab0")
        daemon = stack.enter_context(helper.daemon("haproxy", "-db", "-f", config, log=folder / "log"))
        eventually(runtime.exists, "no runtime socket")
        around = tuple(client.words(()))
        server = stack.enter_context(
            config_server(SITE, folder / "assets", str(BOOTSTRAP.address), PORT, around=around)
        )
        lab = Lab(client, server, Balancer(runtime))
        # Until it has looked a few times, all servers are good to it, and masters are asked before the bootstrap.
        eventually(lambda: lab.state() is Status.UP and not lab.masters_count(), f"checks fail: {lab.balancer.state()}")
        yield lab
        assert daemon.poll() is None, (folder / "log").read_text()


def test_every_machine_gets_its_own_config_through_the_load_balancer(lab: Lab) -> None:
    before = len(lab.server.lines())
    for machine in (FIRST, SECOND):
        answer = lab.curl(client=str(machine.address), at=str(SITE.helper.address)).stdout
        expected = lab.server.configs / "join" / f"{SITE.fqdn(machine)}.kubeconfig"
        assert files_in(json.loads(answer))[KUBECONFIG] == expected.read_bytes()

    def clients() -> set[str]:
        return {line["client"] for line in lab.server.lines()[before:]}

    # A line comes after its answer.
    eventually(lambda: clients() == {str(FIRST.address), str(SECOND.address)}, f"in the ledger: {clients()}")


def test_without_the_load_balancer_too(lab: Lab) -> None:
    assert lab.status(str(FIRST.address), str(BOOTSTRAP.address)) == "200"
    assert lab.status(STRANGER, str(BOOTSTRAP.address)) == "403"


def test_strangers_and_pods_get_nothing(lab: Lab) -> None:
    assert lab.status(STRANGER) == "403"
    # The load balancer has not even let it through.
    assert lab.status(POD) == "000"
    assert lab.status(POD, str(BOOTSTRAP.address)) == "403"


@pytest.mark.parametrize("at", [SITE.helper.address, BOOTSTRAP.address])
def test_a_machine_cannot_speak_for_another(lab: Lab, at: object) -> None:
    """Neither to the server itself, nor through the load balancer, which says who it is before that."""
    before = len(lab.server.lines())
    done = lab.curl("--haproxy-protocol", client=str(FIRST.address), at=str(at))
    assert done.returncode != 0
    assert done.stdout == b""

    def noted() -> set[tuple[str, int]]:
        return {(line["client"], line["status"]) for line in lab.server.lines()[before:]}

    eventually(lambda: (str(FIRST.address), 400) in noted(), f"it is not in the ledger: {noted()}")


def test_the_load_balancer_notices_when_the_server_hangs(lab: Lab) -> None:
    assert lab.server.process is not None
    eventually(lambda: lab.state() is Status.UP, "it is not asked")
    checks = [line for line in lab.server.lines() if line["client"] == str(SITE.helper.address)]
    assert checks == [], "health checks are not written down"
    lab.server.process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: lab.state() is Status.DOWN, "it is still asked")
    finally:
        lab.server.process.send_signal(signal.SIGCONT)
    eventually(lambda: lab.state() is Status.UP, "it is not asked again")
