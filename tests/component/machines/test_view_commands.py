"""The ways into a lab, as a person uses them: real namespaces, a real name server, real connections."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from lab_network import TestLab, test_lab

from falsework.assets.keys_in_folder import ADMIN_KUBECONFIG
from falsework.assets.kubeconfig import kubeconfig
from falsework.host import packages
from falsework.lab.folder import NETWORK

KUBECTL = (
    '#!/bin/sh\nfor word in "$@"; do printf "<%s>" "$word"; done; echo; echo "$KUBECONFIG"; cat; echo $$; exit 5\n'
)
"""Shows what it was given; what kubectl does with it is kubectl's own."""

ECHO = """
import asyncio, hashlib, sys

async def serve(reader, writer):
    data = await reader.read()
    writer.write(hashlib.sha256(data).digest() + data[::-1])
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]), backlog=200)
    await server.serve_forever()

asyncio.run(main())
"""
"""Answers when the other side has said all, so that a half-closed connection must stay open."""


@dataclass(frozen=True)
class Command:
    """Falsework's command line, for one lab."""

    lab: TestLab

    def words(self, command: str, *more: str) -> list[str]:
        return [sys.executable, "-m", "falsework", command, "--dir", str(self.lab.lab.site_folder), *more]

    @property
    def env(self) -> dict[str, str]:
        outside = {"FALSEWORK_STATE": str(self.lab.lab.root.parent), "SHELL": "/bin/bash", "ETCDCTL_ENDPOINTS": "x"}
        return {**os.environ, **outside, "https_proxy": "http://127.0.0.1:1"}

    def run(self, *words: str, given: str = "", before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*before, *self.words(*words)],
            input=given,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A lab whose helper answers for names."""
    packages.ensure(["dnsmasq", "dig"], print)
    folder = tmp_path_factory.mktemp("view")
    with test_lab(folder) as lab:
        lab.network.build()
        lab.give_addresses(lab.site.helper)
        (lab.lab.site_folder / "auth").mkdir()
        content = kubeconfig("lab", "https://elsewhere:6443", b"authority", "admin", b"certificate", b"key")
        (lab.lab.site_folder / ADMIN_KUBECONFIG).write_bytes(content)
        lab.lab.programs.mkdir(parents=True)
        (lab.lab.programs / "kubectl").write_text(KUBECTL)
        (lab.lab.programs / "kubectl").chmod(0o755)
        machine, helper = lab.site.masters[0], lab.site.helper
        record = f"--host-record={lab.site.fqdn(machine)},{machine.address}"
        plain = ("--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root", record)
        listen = ("--bind-interfaces", f"--listen-address={helper.address}", "--log-facility=-", "--log-queries")
        with lab.daemon(helper.name, "dnsmasq", *plain, *listen, log=folder / "dnsmasq.log"):
            command = Command(lab)
            lookup = lab.inside(NETWORK, ("dig", "+short", "+time=1", "+tries=1", f"@{helper.address}", "x.test"))
            while subprocess.run(lookup, capture_output=True, check=False).returncode:
                time.sleep(0.05)
            yield command


LOOK = (
    "ls /run/nscd 2>&1; getent ahostsv4 master-0; dig +short +search master-0; "
    "cat /etc/resolv.conf; grep ^hosts: /etc/nsswitch.conf"
)


def assert_looks_into_the_lab(up: Command, shown: str) -> None:
    site = up.lab.site
    address = str(site.masters[0].address)
    assert shown.count(address) >= 2, shown
    assert f"nameserver {site.helper.address}\nsearch {site.domain}\n" in shown
    assert "hosts: files dns" in shown


def test_a_script_in_the_labs_shell(up: Command) -> None:
    resolv = Path("/etc/resolv.conf").read_bytes()
    done = up.run("shell", given=f"{LOOK}\nenv\nip -o link\nexit 3\n")
    assert done.returncode == 3, done.stderr
    assert_looks_into_the_lab(up, done.stdout)
    assert f"KUBECONFIG={up.lab.lab.site_folder}/auth/kubeconfig\n" in done.stdout
    assert f"PATH={up.lab.lab.programs}:" in done.stdout
    assert "ETCDCTL_" not in done.stdout
    assert "proxy" not in done.stdout
    assert f": {up.lab.site.lab.name}: " in done.stdout
    assert Path("/etc/resolv.conf").read_bytes() == resolv
    assert str(up.lab.lab.root) not in Path("/proc/self/mountinfo").read_text()


def test_one_command_in_the_labs_shell(up: Command) -> None:
    done = up.run("shell", "-c", "grep -c cgroup /proc/self/mountinfo; exit 4")
    assert done.returncode == 4
    assert int(done.stdout) > 0, "control groups are still to be seen"


def test_a_prompt_at_a_terminal(up: Command) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        up.words("shell"), env=up.env, start_new_session=True, stdin=theirs, stdout=theirs, stderr=theirs
    ) as child:
        os.close(theirs)
        os.write(ours, b"command -v kubectl; exit 6\n")
        shown = b""
        # The terminal says EIO when nobody is at its other end any more.
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 4096):
                shown += chunk
        os.close(ours)
        assert child.wait(60) == 6
    text = shown.decode()
    assert f"in the network of {up.lab.site.domain} ({up.lab.site.lab.cidr}, name server" in text
    assert f"[{up.lab.site.cluster_name}] " in text
    assert f"{up.lab.lab.programs}/kubectl" in text


@pytest.mark.parametrize(
    "state",
    [
        "rm /etc/resolv.conf",
        "rm /etc/resolv.conf; ln -s ../run/nowhere/stub-resolv.conf /etc/resolv.conf",
        "rm /etc/resolv.conf; cp /etc/hosts /etc/other; ln -s other /etc/resolv.conf",
        "rm /etc/nsswitch.conf",
        "echo 'hosts: mymachines resolve [!UNAVAIL=return] files dns' >/etc/nsswitch.conf",
        "touch /run/nscd/socket",
    ],
    ids=["missing", "dangling", "link", "no-nsswitch", "resolved", "nscd"],
)
def test_whatever_the_hosts_own_settings_are(up: Command, tmp_path: Path, state: str) -> None:
    """Each tried in a copy of /etc and /run that only the test sees."""
    changed = (
        f"mount -t tmpfs t {tmp_path}; cd {tmp_path}; mkdir -p up work run/netns run/nscd; "
        "mount -t overlay -o lowerdir=/etc,upperdir=up,workdir=work etc /etc; "
        f'mount --rbind /run/netns run/netns; mount --rbind run /run; cd /; {state}; exec "$@"'
    )
    before = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", changed, "changed")
    done = up.run("shell", "-c", LOOK, before=before)
    assert done.returncode == 0, done.stderr
    assert_looks_into_the_lab(up, done.stdout)
    assert "socket" not in done.stdout, "a cache of the host's names is out of reach"


@pytest.mark.parametrize("words", [["get", "pods", "-A", "-o", "wide"], ["-n", "x", "get", "a b"], ["--help"], [""]])
def test_kubectl_gets_its_words_and_input_as_they_are(up: Command, words: list[str]) -> None:
    done = up.run("kubectl", *words, given="from a pipe\n")
    shown, config, given, _ = done.stdout.splitlines()
    assert shown == "".join(f"<{word}>" for word in words)
    assert config == f"{up.lab.lab.site_folder}/auth/kubeconfig"
    assert given == "from a pipe"
    assert done.returncode == 5


def test_kubectl_takes_our_place(up: Command) -> None:
    with subprocess.Popen(up.words("kubectl"), env=up.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read().split()[-1] == str(child.pid).encode(), "signals reach it"


@pytest.mark.parametrize("command", ["shell", "kubectl", "forward"])
def test_a_lab_that_is_not_up(up: Command, tmp_path: Path, command: str) -> None:
    words = [sys.executable, "-m", "falsework", command, "--dir", str(tmp_path)]
    done = subprocess.run(words, env=up.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the lab of {tmp_path} is not up" in done.stderr
    assert f"next:  run `falsework up --dir {tmp_path}`" in done.stderr


@pytest.mark.parametrize("command", ["exec", "ssh"])
def test_machines_that_are_unknown_or_not_made(up: Command, command: str) -> None:
    done = up.run(command, "mastre-0", "--", "true")
    assert done.returncode == 2
    assert "the site has helper, bootstrap, master-0" in done.stderr
    for name in ("master-0", up.lab.site.fqdn(up.lab.site.masters[0])):
        done = up.run(command, name, "--", "true")
        assert done.returncode == 1
        assert "master-0 is not made yet" in done.stderr


@contextlib.contextmanager
def forwarded(up: Command) -> Iterator[tuple[int, Path, subprocess.Popen[str]]]:
    words = up.words("forward", "--port", "0")
    with subprocess.Popen(words, env=up.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert line.startswith("export KUBECONFIG="), child.stderr
            path = Path(line.strip().removeprefix("export KUBECONFIG="))
            yield int(path.name.rpartition("-")[2]), path, child
        finally:
            child.kill()


def asked(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_many_connections_through_one_forwarded_port(up: Command, tmp_path: Path) -> None:
    helper = up.lab.site.helper
    with (
        up.lab.daemon(helper.name, sys.executable, "-c", ECHO, str(helper.address), "6443", log=tmp_path / "echo.log"),
        forwarded(up) as (port, path, child),
    ):
        while not asked(port, b"x"):
            time.sleep(0.05)
        sent = [os.urandom(1000) * (1 + index * 20) for index in range(50)]
        started = time.monotonic()
        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(lambda data: asked(port, data), sent))
        seconds = time.monotonic() - started
        print(f"\n50 connections, {sum(map(len, sent)) / 1e6:.1f} MB each way in {seconds:.2f} s")
        assert answers == [hashlib.sha256(data).digest() + data[::-1] for data in sent]
        cluster = yaml.safe_load(path.read_bytes())["clusters"][0]["cluster"]
        assert cluster["server"] == f"https://127.0.0.1:{port}"
        assert cluster["tls-server-name"] == up.lab.site.api_host
        assert path.stat().st_mode & 0o777 == 0o600
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
        assert not path.exists()


def test_nobody_behind_a_forwarded_port(up: Command) -> None:
    with forwarded(up) as (port, _, child):
        assert asked(port, b"") == b""
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=60)
        assert "port 6443 in the lab: Connection refused" in said


def test_a_slow_reader_is_not_read_ahead_of(up: Command, tmp_path: Path) -> None:
    """What nobody takes stays with who sends it."""
    helper = up.lab.site.helper
    endless = "import socket; s = socket.create_server(('{}', 6443)); c, _ = s.accept(); " + (
        "\nwhile True: c.sendall(bytes(65536))"
    )
    with (
        up.lab.daemon(helper.name, sys.executable, "-c", endless.format(helper.address), log=tmp_path / "endless.log"),
        forwarded(up) as (port, _, child),
    ):
        while True:
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            if connection.recv(1):
                break
            connection.close()
        with connection:
            time.sleep(1.0)
            status = Path(f"/proc/{child.pid}/status").read_text()
            (memory,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")]
            assert memory < 150_000, "kB"


@pytest.mark.parametrize("address", ["0.0.0.0", "192.168.126.1", "localhost"])
def test_only_the_loopback_is_offered(up: Command, address: str) -> None:
    done = up.run("forward", "--address", address)
    assert done.returncode == 2
    assert "is not a loopback address" in done.stderr


def test_a_port_that_is_taken(up: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = up.run("forward", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "choose another port with --port" in done.stderr
