"""The real HAProxy with the rendered configuration: who is asked while whom says what of itself."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from helper_namespace import Namespace, cable

from eventually import eventually
from falsework.helper.balancer import Balancer, serve_besides
from falsework.helper.render import haproxy
from falsework.host import packages
from falsework.site import ports
from falsework.site.load import default_site
from falsework.site.model import Distribution, Machine

# OpenShift's servers: they are asked as anybody asks them. For our own Machine Config Server see test_mcs_balancer.
SITE = dataclasses.replace(default_site(), distribution=Distribution.OPENSHIFT)
SERVER = Path(__file__).parent / "ready_server.py"


@dataclass(frozen=True)
class Lab:
    server: Namespace
    client: Namespace
    folder: Path

    def ready_file(self, machine: Machine) -> Path:
        return self.folder / f"{machine.name}.ready"

    def ask(self, port: int) -> str:
        """Who answers; empty for nobody."""
        words = ("curl", "-sk", "--max-time", "60", f"https://{SITE.helper.address}:{port}/version")
        done = subprocess.run(self.client.words(words), capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    def command(self, text: str) -> str:
        with socket.socket(socket.AF_UNIX) as runtime:
            runtime.connect(str(self.folder / "admin.sock"))
            runtime.sendall(text.encode() + b"\n")
            return b"".join(iter(lambda: runtime.recv(65536), b"")).decode()


def write_certificate(path: Path) -> None:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(hours=1))
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path.write_bytes(private + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Bootstrap and one master listen, at the client's end of the cable."""
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["haproxy", "ip"], print)
    tmp_path = tmp_path_factory.mktemp("balancer")
    write_certificate(tmp_path / "pem")
    config = tmp_path / "haproxy.cfg"
    config.write_text(haproxy.render(SITE, str(tmp_path / "admin.sock")))
    with contextlib.ExitStack() as stack:
        server, client = stack.enter_context(cable(SITE))
        lab = Lab(server, client, tmp_path)
        client.run("ip", "address", "add", f"{SITE.lab.cidr[200]}/{SITE.lab.cidr.prefixlen}", "dev", "eth0")
        client.run("ip", "address", "add", "10.9.9.9/24", "dev", "eth0")
        server.run("ip", "route", "add", "10.9.9.0/24", "dev", "lab0")
        for machine in (SITE.bootstrap, SITE.masters[0]):
            client.run("ip", "address", "add", f"{machine.address}/32", "dev", "eth0")
            for port in (ports.API, ports.MACHINE_CONFIG_SERVER):
                words = (sys.executable, SERVER, machine.address, str(port))
                given = (tmp_path / "pem", lab.ready_file(machine), machine.name)
                log = tmp_path / f"{machine.name}-{port}.log"
                stack.enter_context(client.daemon(*map(str, words), *given, log=log))
        balancer = stack.enter_context(server.daemon("haproxy", "-db", "-f", config, log=tmp_path / "log"))
        eventually((tmp_path / "admin.sock").exists, "no runtime socket")
        yield lab
        assert balancer.poll() is None, (tmp_path / "log").read_text()


@pytest.fixture
def lab(running: Lab) -> Lab:
    """Nobody is ready."""
    for machine in SITE.machines:
        running.ready_file(machine).unlink(missing_ok=True)
    eventually(lambda: running.ask(ports.API) == running.ask(ports.MACHINE_CONFIG_SERVER) == "", "nobody is asked")
    return running


@pytest.mark.parametrize("port", [ports.API, ports.MACHINE_CONFIG_SERVER])
def test_masters_take_over_from_the_bootstrap_and_back_without_a_failed_request(lab: Lab, port: int) -> None:
    bootstrap, master = SITE.bootstrap, SITE.masters[0]
    lab.ready_file(bootstrap).touch()
    eventually(lambda: lab.ask(port) == bootstrap.name, "the bootstrap serves while no master does")
    answers: list[str] = []

    def asked(expected: str) -> bool:
        answers.append(lab.ask(port))
        return answers[-1] == expected

    lab.ready_file(master).touch()
    eventually(lambda: asked(master.name), "a master that is ready takes over")
    lab.ready_file(master).unlink()
    eventually(lambda: asked(bootstrap.name), "a master that says it is not ready is out")
    assert set(answers) == {bootstrap.name, master.name}


def test_servers_are_drained_at_run_time(lab: Lab) -> None:
    for machine in (SITE.bootstrap, SITE.masters[0]):
        lab.ready_file(machine).touch()
    master = SITE.masters[0].name
    eventually(lambda: lab.ask(ports.API) == master, "the master serves")
    assert lab.command(f"set server {haproxy.API_BACKEND}/{master} state maint").strip() == ""
    eventually(lambda: lab.ask(ports.API) == SITE.bootstrap.name, "the bootstrap serves instead")
    assert f" {master} " in lab.command(f"show servers state {haproxy.API_BACKEND}")
    assert lab.command(f"set server {haproxy.API_BACKEND}/{master} state ready").strip() == ""
    eventually(lambda: lab.ask(ports.API) == master, "the master serves again")


def test_machine_configs_are_for_the_lab_alone(lab: Lab) -> None:
    lab.ready_file(SITE.bootstrap).touch()
    both = (ports.API, ports.MACHINE_CONFIG_SERVER)
    eventually(lambda: {lab.ask(port) for port in both} == {SITE.bootstrap.name}, "the lab is served")
    url = f"https://{SITE.helper.address}"
    words = ("curl", "-sk", "--max-time", "60", "--interface", "10.9.9.9")
    for port, is_served in ((ports.API, True), (ports.MACHINE_CONFIG_SERVER, False)):
        command = lab.client.words((*words, f"{url}:{port}/version"))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == is_served, done


def test_statistics(lab: Lab) -> None:
    found = lab.client.run("curl", "-s", "--max-time", "60", f"http://{SITE.helper.address}:9000/;csv")
    assert f"\n{haproxy.API_BACKEND},{SITE.bootstrap.name}," in found
    lab.client.run("curl", "-sf", "--max-time", "60", f"http://{SITE.helper.address}:9000/healthz")


def test_the_bootstrap_goes_without_a_lost_connection(lab: Lab) -> None:
    """The last of them: the bootstrap does not come back."""
    for machine in (SITE.bootstrap, SITE.masters[0]):
        lab.ready_file(machine).touch()
    master = SITE.masters[0].name
    eventually(lambda: lab.ask(ports.API) == lab.ask(ports.MACHINE_CONFIG_SERVER) == master, "the master serves")
    balancer = Balancer(lab.folder / "admin.sock")
    over = threading.Event()
    answers: list[str] = []

    def poll() -> None:
        while not over.is_set():
            answers.append(lab.ask(ports.API))

    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(poll)
        balancer.remove(SITE.bootstrap.name)
        balancer.remove(SITE.bootstrap.name)
        over.set()
        polling.result()
    assert SITE.bootstrap.name not in {server.name for server in balancer.state()}
    assert serve_besides("", haproxy.API_BACKEND, balancer.state()) == [master]
    assert lab.ask(ports.API) == master
    assert set(answers) <= {master}
