"""The lab's way out: in place, found again, ended; and nothing of the host's own network changed by it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_network import TestLab, host_state, leftovers, test_lab

from falsework.host import packages
from falsework.lab.folder import NETWORK
from falsework.machines import nat
from falsework.machines.namespaces import FOLDER, is_namespace
from falsework.machines.network import look, tap_of


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[TestLab]:
    with test_lab(tmp_path) as made:
        packages.ensure(["nft", "slirp4netns"], print)
        yield made.changed(nat=True)


def running(lab: TestLab) -> list[int]:
    return [pid for pid, _ in nat.processes("slirp4netns", str(lab.lab.netns_path(NETWORK)))]


@contextlib.contextmanager
def loopback_server() -> Iterator[int]:
    """Something on the host's 127.0.0.1 that says hello to whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(b"hello")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def said_to(lab: TestLab, machine: str, address: str, port: int) -> str:
    words = lab.inside(machine, ("timeout", "30", "bash", "-c", f"cat </dev/tcp/{address}/{port}"))
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def test_the_way_out_is_in_place_and_the_host_is_as_it_was(lab: TestLab) -> None:
    before = host_state()
    others = {path for path in FOLDER.glob("*") if is_namespace(path)}
    started = time.monotonic()
    done = lab.network.build()
    print(f"\nnetwork with a way out in {time.monotonic() - started:.3f} s")
    assert any("slirp4netns" in what for what in done)
    assert lab.network.plan() == []
    assert {path for path in others if is_namespace(path)} == others, "other labs' namespaces have kept their names"
    assert "default via 10.0.2.2 dev nat0" in lab.run(NETWORK, "ip", "route")
    assert lab.run(NETWORK, "cat", "/proc/sys/net/ipv4/ip_forward").strip() == "1"
    assert 'oifname "nat0" masquerade' in lab.run(NETWORK, "nft", "list", "ruleset")
    machine = lab.site.masters[0]
    lab.give_addresses(machine)
    with loopback_server() as port:
        assert said_to(lab, machine.name, "10.0.2.2", port) == "", "the host's loopback is the host's"
    assert host_state() == before
    lab.remove()
    assert leftovers(lab.lab) == []
    assert host_state() == before


def test_packets_are_forwarded_and_masqueraded(lab: TestLab) -> None:
    """Shown with the host's loopback as the world outside, which it never is but here."""
    lab.network.build()
    (pid,) = running(lab)
    nat.Nat(lab.site, lab.lab, lab.journal, host_loopback=True).build(tap_of(look(lab.lab)))
    assert running(lab) != [pid]
    machine = lab.site.masters[0]
    lab.give_addresses(machine)
    with loopback_server() as port:
        assert said_to(lab, machine.name, "10.0.2.2", port) == "hello"


def test_it_is_found_again_and_replaced_when_it_is_gone(lab: TestLab) -> None:
    lab.network.build()
    (pid,) = running(lab)
    assert lab.network.build() == []
    assert running(lab) == [pid]
    os.kill(pid, signal.SIGKILL)
    while running(lab):
        time.sleep(0.01)
    assert lab.network.build() == ["slirp4netns as the way out"]
    assert len(running(lab)) == 1
    subprocess.run(["ip", "netns", "delete", lab.lab.netns(NETWORK)], check=True)
    lab.network.build()
    assert len(running(lab)) == 1, "the one of the old namespace has ended"
    assert lab.network.plan() == []


def test_it_lives_on_without_the_command_that_started_it(lab: TestLab) -> None:
    build = (
        "import dataclasses, sys; from pathlib import Path; from falsework.lab.folder import Lab; "
        "from falsework.lab.journal import Journal; from falsework.machines.network import Network; "
        "from falsework.site.load import default_site; site = default_site(); "
        "site = dataclasses.replace(site, lab=dataclasses.replace(site.lab, nat=True)); "
        "lab = Lab.of(Path(sys.argv[1]), Path(sys.argv[2])); Network(site, lab, Journal(lab.journal)).build()"
    )
    subprocess.run([sys.executable, "-c", build, lab.lab.site_folder, lab.lab.root.parent], check=True, timeout=120)
    assert len(running(lab)) == 1
    assert lab.network.plan() == []


def test_a_site_that_wants_none_any_more_has_none(lab: TestLab) -> None:
    lab.network.build()
    closed = lab.changed(nat=False)
    assert any("wants no way out" in what for what in closed.network.plan())
    closed.network.build()
    assert running(lab) == []
    assert "nat0" not in lab.run(NETWORK, "ip", "-o", "link")
    assert lab.run(NETWORK, "cat", "/proc/sys/net/ipv4/ip_forward").strip() == "0"
    assert closed.network.plan() == []
