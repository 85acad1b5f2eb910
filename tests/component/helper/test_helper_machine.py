"""The whole helper: the release's OS image with the helper's config, booted, and asked from the network."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helper_machine import SHARE, HelperMachine, files_for, helper_machine, site_with_share

from eventually import PATIENCE, eventually
from falsework.assets import node
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.cli import main
from falsework.errors import UsageError
from falsework.haproxy import command_line
from falsework.helper import boot, expectations
from falsework.helper.balancer import Balancer, Server, Status
from falsework.helper.render import haproxy
from falsework.helper.update import bring_up_to_date
from falsework.host import packages
from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.inventory import Release
from falsework.release.payload import REGISTRY
from falsework.site import ports

HERE = Path(__file__).parent
RELOADS = 5


@pytest.fixture(scope="module")
def helper(beside_cache: Path, release: Release, cache: Cache) -> Iterator[HelperMachine]:
    packages.ensure(["systemd-nspawn", "ip", "dig", "ssh"], print)
    folder = beside_cache / "helper-machine"
    folder.mkdir()
    with helper_machine(site_with_share(), folder, release, cache) as made:
        yield made


# All of it


def test_all_of_it_runs_and_nothing_else(helper: HelperMachine) -> None:
    assert helper.inside("systemctl", "is-system-running") == "running"
    listed = helper.inside("systemctl", "list-units", "--type=service", "--state=running", "--plain", "--no-legend")
    systemd = {"dbus.service", "systemd-journald.service", "systemd-logind.service"}
    assert {line.split()[0] for line in listed.splitlines()} - systemd == {
        "boot-server.service",
        "dnsmasq.service",
        "haproxy.service",
        "nfs-ganesha.service",
        "registry.service",
        "rpcbind.service",
        "ssh.service",
    }
    assert helper.inside("systemctl", "is-active", "nftables.service") == "active"


def test_it_is_up_in_seconds(helper: HelperMachine) -> None:
    usage = helper.provider.usage(helper.name)
    print(f"{helper.boot_seconds:.2f} s, {usage.cpu_seconds:.2f} CPU s, {usage.memory_bytes / 2**20:.0f} MiB")
    # On an idle host it is half of 3 s; tests share theirs.
    assert helper.boot_seconds < 60


def test_a_person_can_log_in(helper: HelperMachine) -> None:
    key = helper.lab.site_folder / "auth/bootstrap-ssh-key"
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "LogLevel=ERROR")
    words = ["ssh", "-i", str(key), *(word for option in options for word in ("-o", option))]
    target = f"core@{helper.site.helper.address}"
    assert helper.told(*words, target, "sudo id -un; hostname").split() == [
        "root",
        helper.site.fqdn(helper.site.helper),
    ]


def test_exactly_the_ports_of_the_plan_are_open(helper: HelperMachine) -> None:
    listed = [port for port in ports.ports_of(helper.site, helper.site.helper) if "tcp" in port.protocols]
    expected = sorted(int(number) for port in listed for number in port.ranges)
    found = json.loads(helper.told(sys.executable, HERE / "port_scan.py", str(helper.site.helper.address), "4"))
    assert found == {"open": expected, "refused": []}


# DNS and TFTP


def test_names(helper: HelperMachine) -> None:
    site = helper.site

    def dig(*words: str) -> str:
        return helper.told("dig", "+short", "+time=60", "+tries=1", f"@{site.helper.address}", *words)

    assert dig(f"master-1.{site.domain}") == str(site.masters[1].address)
    assert dig("-x", str(site.masters[1].address)) == f"master-1.{site.domain}."
    assert dig(f"anything.apps.{site.domain}") == str(site.ingress_vip)
    service = dig("SRV", f"_etcd-server-ssl._tcp.{site.domain}").splitlines()
    assert sorted(service) == [f"0 10 2380 etcd-{index}.{site.domain}." for index in range(3)]
    # The helper asks itself.
    assert helper.inside("dig", "+short", f"api.{site.domain}") == str(site.api_vip)


def test_boot_loaders_and_scripts(helper: HelperMachine, release: Release) -> None:
    def fetched(path: str) -> bytes:
        url = f"tftp://{helper.site.helper.address}/{path}"
        words = helper.client_words("curl", "-sf", "--max-time", "60", url)
        return subprocess.run(words, capture_output=True, check=True).stdout

    for name, place in (
        ("pxelinux.0", "usr/lib/PXELINUX/pxelinux.0"),
        ("ldlinux.c32", "usr/lib/syslinux/modules/bios/ldlinux.c32"),
        ("ipxe.efi", "boot/ipxe.efi"),
    ):
        assert fetched(name) == (release.os_root / place).read_bytes()
    mac = boot.dashed_mac(helper.site.masters[0])
    assert b"ignition/machines/master-0.ign" in fetched(f"pxelinux.cfg/01-{mac}")
    assert fetched(f"ipxe/{mac}.ipxe").startswith(b"#!ipxe")


def test_configs_are_for_the_boot_server_alone(helper: HelperMachine) -> None:
    path = "/var/lib/falsework/ignition/machines/master-0.ign"
    assert json.loads(helper.inside("runuser", "-u", "www-data", "--", "cat", path))["ignition"]
    script = f"runuser -u haproxy -- cat {path} 2>&1 || true"
    assert helper.inside("sh", "-c", script).endswith("Permission denied")


# Registry


def registry_url(helper: HelperMachine) -> str:
    return f"https://{helper.site.helper.address}:{ports.REGISTRY}/v2"


def curl(helper: HelperMachine, *words: str) -> subprocess.CompletedProcess[bytes]:
    authority = helper.lab.site_folder / "tls/root-ca.crt"
    command = helper.client_words("curl", "-s", "--max-time", "60", "--cacert", authority, *words)
    return subprocess.run(command, capture_output=True, check=False)


def test_images_can_be_pulled_by_tag_and_by_digest(helper: HelperMachine, release: Release, cache: Cache) -> None:
    image = release.images["pause"]
    base = f"{registry_url(helper)}/release/pause"
    accept = ("-f", "-H", f"Accept: {oci.MANIFEST}")
    for reference in (image.version, f"sha256:{image.digest}"):
        content = curl(helper, *accept, f"{base}/manifests/{reference}").stdout
        assert hashlib.sha256(content).hexdigest() == image.digest
    for blob in oci.blobs_of(cache, image)[1:]:
        assert hashlib.sha256(curl(helper, "-f", f"{base}/blobs/sha256:{blob}").stdout).hexdigest() == blob
    names = json.loads(curl(helper, "-f", f"{registry_url(helper)}/_catalog").stdout)["repositories"]
    assert names == sorted(f"release/{name}" for name in release.images)


@pytest.mark.parametrize("host", [REGISTRY, "helper.lab.falsework.test"])
def test_it_shows_a_certificate_for_its_names(helper: HelperMachine, host: str) -> None:
    place = f"{host}:{ports.REGISTRY}"
    assert (
        curl(helper, "-f", "--resolve", f"{place}:{helper.site.helper.address}", f"https://{place}/v2/").returncode == 0
    )


def test_nobody_pushes(helper: HelperMachine, release: Release) -> None:
    base = f"{registry_url(helper)}/release/pause"
    for method, path in (
        ("POST", "blobs/uploads/"),
        ("PUT", "manifests/mine"),
        ("DELETE", f"manifests/sha256:{release.images['pause'].digest}"),
    ):
        done = curl(helper, "-X", method, "-d", "{}", "-o", "/dev/null", "-w", "%{http_code}", f"{base}/{path}")
        assert done.stdout == b"405", (method, done)


def test_a_nodes_runtime_pulls_from_it(helper: HelperMachine, release: Release, cache: Cache) -> None:
    """With the files every node has; on the helper, which has the same OS image, as if it were one."""
    authority = (helper.lab.site_folder / "tls/root-ca.crt").read_bytes()
    for file in node.runtime_files(DEFAULT_PAYLOAD.sandbox_image, node.registry_url(helper.site), authority):
        helper.provider.write_file(helper.name, file.path, file.content, file.mode)
    unit = ("systemd-run", "--unit=runtime", "--property=Type=notify", "--property=Delegate=yes")
    helper.inside(*unit, "containerd", "--config", "/etc/containerd/config.toml")
    try:
        image = release.images["pause"]
        for name in (image.tagged, image.pinned):
            # It is called after its config.
            assert oci.blobs_of(cache, image)[1] in helper.inside("crictl", "pull", name)
    finally:
        helper.inside("systemctl", "stop", "runtime")


# NFS


def test_shares_are_listed(helper: HelperMachine, release: Release) -> None:
    words = ("chroot", release.os_root, "showmount", "--no-headers", "-e", str(helper.site.helper.address))
    eventually(lambda: helper.ask(*words).returncode == 0, "NFS answers")
    assert helper.told(*words).split() == [SHARE, str(helper.site.lab.cidr)]


# Load balancer


@contextlib.contextmanager
def api_server(helper: HelperMachine, name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Ready from the beginning, at a machine's address."""
    address = helper.site.machine(name).address
    pair = folder / f"{name}.pem"
    tls = helper.lab.site_folder / "tls/kube-apiserver-lb-server"
    pair.write_bytes(tls.with_suffix(".key").read_bytes() + tls.with_suffix(".crt").read_bytes())
    words = ("setpriv", "--pdeathsig", "KILL", "--", sys.executable, HERE / "ready_server.py", str(address))
    if name != helper.client:
        helper.told("ip", "address", "add", f"{address}/32", "dev", "eth0")
    try:
        with subprocess.Popen(helper.client_words(*words, str(ports.API), pair, pair, name)) as server:
            try:
                yield server
            finally:
                server.kill()
    finally:
        if name != helper.client:
            helper.told("ip", "address", "delete", f"{address}/32", "dev", "eth0")


def runtime_socket(helper: HelperMachine) -> Path:
    return Path(f"/proc/{helper.provider.init(helper.name)}/root{haproxy.RUNTIME_SOCKET}")


def balancer_of(helper: HelperMachine) -> Balancer:
    return Balancer(runtime_socket(helper))


def worker_of(helper: HelperMachine) -> str:
    """The process id of who answers; empty in the moment in which one makes way for the next."""
    try:
        said = command_line.ask(runtime_socket(helper), "show info", PATIENCE)
    except OSError:
        return ""
    return said.partition("\nPid: ")[2].partition("\n")[0]


def place_in(balancer: Balancer, name: str, backend: str = haproxy.API_BACKEND) -> Server:
    return next(server for server in balancer.state() if (server.backend, server.name) == (backend, name))


def answers(helper: HelperMachine) -> Callable[[], str]:
    words = ("curl", "-sk", "--max-time", "60", f"https://{helper.site.api_vip}:{ports.API}/version")

    def ask() -> str:
        done = helper.ask(*words)
        return done.stdout if done.returncode == 0 else f"curl ended with {done.returncode}"

    return ask


@pytest.fixture
def served(helper: HelperMachine, tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Two masters' API servers."""
    with api_servers(helper, tmp_path, "master-0", "master-1") as servers:
        yield servers


@contextlib.contextmanager
def api_servers(helper: HelperMachine, folder: Path, *names: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """The balancer knows of them when the block begins, and knows that they are gone when it has ended."""
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(api_server(helper, name, folder)) for name in names}
        eventually(lambda: good_ones(helper) == set(names), "these are ready and no others")
        yield servers
    for name in names:
        declare_down(helper, name)
    eventually(lambda: good_ones(helper) == set(), "none is left")


def declare_down(helper: HelperMachine, name: str) -> None:
    """As checks would after some seconds: nobody answers at that address any more."""
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.connect(str(runtime_socket(helper)))
        runtime.sendall(f"set server {haproxy.API_BACKEND}/{name} health down\n".encode())
        assert runtime.recv(1000).strip() == b""


def good_ones(helper: HelperMachine) -> set[str]:
    servers = [server for server in balancer_of(helper).state() if server.backend == haproxy.API_BACKEND]
    return {server.name for server in servers if server.status is Status.UP}


def test_the_state_tells_who_is_good(helper: HelperMachine, served: dict[str, subprocess.Popen[bytes]]) -> None:
    balancer, ask = balancer_of(helper), answers(helper)
    found = place_in(balancer, "master-0")
    assert found.address == f"{helper.site.masters[0].address}:{ports.API}"
    assert "L7OK" in found.check
    assert place_in(balancer, "bootstrap").backup
    served["master-0"].kill()
    eventually(lambda: place_in(balancer, "master-0").status is Status.DOWN, "a dead one is noticed")
    assert {ask() for _ in range(5)} == {"master-1"}


def test_the_command_shows_it(
    helper: HelperMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FALSEWORK_STATE", str(helper.lab.root.parent))
    place = ["--dir", str(helper.lab.site_folder)]
    assert main(["balancer", "state", "--json", *place]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {entry["backend"] for entry in listed} == {"api", "machine-config-server", "ingress-http", "ingress-https"}
    assert main(["balancer", "maint", "worker-0", *place]) == 0
    assert capsys.readouterr().out.count(" MAINT ") == 2
    assert main(["balancer", "ready", "worker-0", *place]) == 0


def test_a_drained_machine_gets_nothing_new_in_any_backend(
    helper: HelperMachine, served: dict[str, subprocess.Popen[bytes]]
) -> None:
    assert served
    balancer, ask = balancer_of(helper), answers(helper)
    drained = balancer.drain("master-0")
    assert {server.backend for server in drained} == {haproxy.API_BACKEND, haproxy.MCS_BACKEND}
    try:
        assert place_in(balancer, "master-0").status is Status.DRAIN
        assert {ask() for _ in range(5)} == {"master-1"}
        assert {server.status for server in balancer.maint("master-0")} == {Status.MAINT}
    finally:
        balancer.ready("master-0")
    eventually(lambda: ask() == "master-0", "it is back")
    with pytest.raises(UsageError, match="no server nobody"):
        balancer.drain("nobody")


@pytest.mark.parametrize("names", [("master-0", "master-1"), ("bootstrap",)])
def test_a_reload_loses_no_request(helper: HelperMachine, tmp_path: Path, names: tuple[str, ...]) -> None:
    """Some servers are good, others are not, and a new worker knows which from its first moment."""
    ask = answers(helper)
    heard: list[str] = []
    stop = threading.Event()
    began = time.time()

    def go_on_asking() -> None:
        while not stop.is_set():
            heard.append(ask())

    def hear(more: int) -> None:
        enough = len(heard) + more
        eventually(lambda: len(heard) >= enough, f"only {len(heard)} answers")

    with api_servers(helper, tmp_path, *names):
        main_pid = helper.inside("systemctl", "show", "--property=MainPID", "--value", "haproxy")
        asking = [threading.Thread(target=go_on_asking) for _ in range(2)]
        for thread in asking:
            thread.start()
        try:
            for _ in range(RELOADS):
                helper.inside("systemctl", "reload", "haproxy")
                hear(6)
        finally:
            stop.set()
            for thread in asking:
                thread.join()
        assert helper.inside("systemctl", "show", "--property=MainPID", "--value", "haproxy") == main_pid
    assert set(heard) == set(names)
    # One that was sent to a dead server first, and then to another, takes 2 s longer.
    assert tried_in_vain(helper, began) == []


def tried_in_vain(helper: HelperMachine, since: float) -> list[str]:
    """Of the connections the load balancer has written down, those for which it had to try again: how often is the last
    number of the last word but one."""
    said = helper.inside("journalctl", "--unit=haproxy", "--output=cat", f"--since=@{since:.0f}").splitlines()
    connections = [line for line in said if f" {haproxy.API_BACKEND} {haproxy.API_BACKEND}/" in line]
    assert connections
    return [line for line in connections if line.split()[-2].rpartition("/")[2] != "0"]


def test_a_connection_outlives_a_reload(helper: HelperMachine, served: dict[str, subprocess.Popen[bytes]]) -> None:
    assert served
    # The second word is said after the reload, on the connection the first was said on.
    talk = """if True:
        import http.client, ssl, sys
        anyone = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(sys.argv[1], 6443, context=anyone, timeout=60)
        connection.connect()
        print("connected", flush=True)
        sys.stdin.readline()
        connection.auto_open = 0
        connection.request("GET", "/version")
        print(connection.getresponse().read().decode())
    """
    words = helper.client_words(sys.executable, "-c", talk, str(helper.site.api_vip))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "connected\n"
        helper.inside("systemctl", "reload", "haproxy")
        heard, _ = client.communicate("go on\n", timeout=PATIENCE)
    assert heard.strip() in served


def test_a_drained_machine_stays_so_through_a_reload(
    helper: HelperMachine, served: dict[str, subprocess.Popen[bytes]]
) -> None:
    assert served
    balancer = balancer_of(helper)
    balancer.drain("master-0")
    try:
        before = worker_of(helper)
        helper.inside("systemctl", "reload", "haproxy")
        eventually(lambda: worker_of(helper) not in ("", before), "there is a new worker")
        assert place_in(balancer, "master-0").status is Status.DRAIN
    finally:
        balancer.ready("master-0")


def test_a_config_that_is_wrong_is_not_loaded(helper: HelperMachine) -> None:
    path = f"/etc/haproxy/{haproxy.PATH}"
    helper.inside("sh", "-c", f"cp {path} /root/good && echo nonsense >>{path}")
    try:
        assert helper.inside("sh", "-c", "systemctl reload haproxy || echo refused").endswith("refused")
        assert len(balancer_of(helper).state()) > 0
    finally:
        helper.inside("sh", "-c", f"mv /root/good {path} && systemctl reload haproxy")


# The ledger


def test_what_was_asked_is_in_the_ledger(
    helper: HelperMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FALSEWORK_STATE", str(helper.lab.root.parent))
    site, address = helper.site, helper.site.helper.address
    own, others = (f"/ignition/machines/{machine.name}.ign" for machine in site.masters[:2])
    helper.provider.write_file(helper.name, expectations.PATH, b'{"master-0": true}')
    base = boot.base_url(site)
    # A load balancer that has just been reloaded takes every server for good until it has looked.
    eventually(lambda: good_ones(helper) == set(), "no API server runs here")
    assert json.loads(helper.told("curl", "-s", f"{base}{own}"))["ignition"]
    for url in (f"{base}{others}", f"tftp://{address}/missing", f"https://{address}:{ports.API}/"):
        helper.ask("curl", "-s", "--max-time", "60", url)
    helper.told("dig", f"@{address}", f"nobody.{site.domain}")
    helper.ask("curl", "-sk", "--max-time", "60", f"https://{address}:{ports.REGISTRY}/v2/nothing/manifests/1")

    def shown() -> str:
        assert main(["ledger", "--dir", str(helper.lab.site_folder), "--machine", "master-0"]) == 0
        return capsys.readouterr().out

    for words in (
        f"http      master-0 ({site.masters[0].address}) asked for GET {own}, got 200, ",
        f"asked for GET {others}, got nothing, because 403: that is the config of master-1",
        "asked for missing, got nothing, because there is no such file",
        f"asked for A nobody.{site.domain}, got nothing, because there is no such name",
        "asked for api, got nothing, because no server is ready",
        "asked for GET /v2/nothing/manifests/1, got nothing, because ",
    ):
        eventually(lambda words=words: words in shown(), words)  # type: ignore[misc]


# Changes. Last: the helper is another one afterwards.


def test_only_what_changed_is_written_and_told(helper: HelperMachine) -> None:
    site = helper.site
    same = bring_up_to_date(files_for(site, helper.lab.site_folder), helper.provider, helper.name)
    assert not same, same
    smaller = dataclasses.replace(site, nfs_shares=(), machines=site.machines[:-1])
    wanted = files_for(smaller, helper.lab.site_folder)
    changes = bring_up_to_date(wanted, helper.provider, helper.name)
    assert changes.stop == ("nfs-ganesha.service",)
    assert "/var/lib/falsework/ignition/machines/worker-1.ign" in changes.remove
    assert {words[1:] for words in changes.commands} == {
        ("daemon-reload",),
        ("reload", "nftables.service"),
        ("reload", "haproxy.service"),
    }
    assert not bring_up_to_date(wanted, helper.provider, helper.name)
    assert helper.inside("systemctl", "is-system-running") == "running"
    # What somebody broke in there is mended, and can be read by whom it is for.
    path = "/var/lib/falsework/ignition/machines/master-0.ign"
    helper.inside("sh", "-c", f"echo >{path}")
    assert [file.path for file in bring_up_to_date(wanted, helper.provider, helper.name).write] == [path]
    assert json.loads(helper.inside("runuser", "-u", "www-data", "--", "cat", path))["ignition"]
    back = bring_up_to_date(files_for(site, helper.lab.site_folder), helper.provider, helper.name)
    assert ("systemctl", "enable", "nfs-ganesha.service") in back.commands
    assert helper.inside("systemctl", "is-active", "nfs-ganesha.service") == "active"
