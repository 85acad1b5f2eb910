"""The real Machine Config Server on loopback, where every machine of a small site has an address of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import selectors
import signal
import socket
import ssl
import struct
import time
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from real_api import free_port

from asked_server import SERVER, STRANGER, Answer, answer_to, last_line, site_on_loopback
from eventually import PATIENCE, eventually
from falsework.assets.ignition import files_in
from falsework.site.load import default_site
from mcs_process import BOOT, ConfigServer, config_server

HELPER = IPv4Address("127.0.0.2")
SITE = dataclasses.replace(
    site_on_loopback(), helper=dataclasses.replace(default_site().helper, address=HELPER), api_vip=HELPER
)
BALANCER = str(HELPER)
FIRST, SECOND = SITE.masters[:2]
WORKER = SITE.workers[0]
IGNITION = "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1"
KUBECONFIG = "/etc/kubernetes/kubeconfig"


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assets")


@pytest.fixture(scope="module")
def server(assets: Path) -> Iterator[ConfigServer]:
    with config_server(SITE, assets, SERVER, free_port()) as running:
        yield running


@pytest.fixture
def fresh(assets: Path) -> Iterator[ConfigServer]:
    """A server of its own: its memory is looked at, or its files are changed."""
    with config_server(SITE, assets, SERVER, free_port()) as running:
        yield running


def connected(server: ConfigServer, client: str = STRANGER) -> socket.socket:
    return socket.create_connection((SERVER, server.port), PATIENCE, source_address=(client, 0))


def secure(server: ConfigServer, client: str, first: bytes = b"") -> ssl.SSLSocket:
    """`first` is said before TLS begins."""
    plain = connected(server, client)
    plain.sendall(first)
    return server.trust().wrap_socket(plain, server_hostname=server.host)


def ask(
    server: ConfigServer,
    path: str,
    client: str,
    method: str = "GET",
    *,
    first: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    connection = http.client.HTTPConnection(server.host, server.port)
    connection.sock = secure(server, client, first)
    return answer_to(connection, method, path, headers or {})


def proxied(client: str) -> bytes:
    """As HAProxy says it with send-proxy-v2."""
    addresses = IPv4Address(client).packed + IPv4Address(SERVER).packed + struct.pack("!HH", 40000, 22623)
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack("!BBH", 0x21, 0x11, len(addresses)) + addresses


LOCAL = b"\r\n\r\n\0\r\nQUIT\n" + struct.pack("!BBH", 0x20, 0, 0)


def written(server: ConfigServer, client: str, **fields: object) -> dict[str, Any]:
    return last_line(server.lines, "client", client, fields)


def test_a_machine_gets_the_config_of_its_role_with_its_own_credential(server: ConfigServer) -> None:
    configs = {}
    for machine in (FIRST, SECOND):
        answer = ask(server, "/config/master", str(machine.address), headers={"Accept": IGNITION})
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert int(answer.headers["content-length"]) == len(answer.body)
        files = configs[machine.name] = files_in(answer.config)
        expected = server.configs / "join" / f"{SITE.fqdn(machine)}.kubeconfig"
        assert files.pop(KUBECONFIG) == expected.read_bytes()
        (entry,) = (entry for entry in answer.config["storage"]["files"] if entry["path"] == KUBECONFIG)
        assert entry["mode"] == 0o600
        assert answer.config["ignition"]["version"] == "3.2.0"
        written(server, str(machine.address), status=200, machine=SITE.fqdn(machine), bytes=len(answer.body))
    assert configs[FIRST.name] == configs[SECOND.name]
    rendered = json.loads((server.assets / "rendered" / "master.ign").read_bytes())
    assert configs[FIRST.name] == files_in(rendered)


def test_what_was_handed_out_is_noted_for_the_approver(fresh: ConfigServer) -> None:
    before = time.time()
    ask(fresh, "/config/master", str(FIRST.address), "HEAD")
    ask(fresh, "/config/worker", str(SECOND.address))
    old = {"Accept": "application/vnd.coreos.ignition+json;version=2.2.0"}
    ask(fresh, "/config/master", str(FIRST.address), headers=old)
    assert fresh.served() == {}
    assert ask(fresh, "/config/master", str(FIRST.address)).status == 200
    eventually(lambda: list(fresh.served()) == [SITE.fqdn(FIRST)], "it is not noted")
    noted = fresh.served()[SITE.fqdn(FIRST)]
    assert noted["boot"] == BOOT
    assert before - 1 <= noted["time"] <= time.time() + 1
    # Half of it is not it.
    with secure(fresh, str(SECOND.address)) as client:
        client.sendall(b"GET /config/master HTTP/1.1\r\n\r\n")
        client.recv(1000)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    statuses = [200, 403, 500, 200, 200]
    eventually(lambda: [line["status"] for line in fresh.in_the_ledger()] == statuses, f"{fresh.in_the_ledger()}")
    assert fresh.in_the_ledger() == fresh.lines()


@pytest.mark.parametrize("path", ["/config/master", "/config/worker", "/config/", "/config/none", "/config/master?x"])
@pytest.mark.parametrize("client", [STRANGER, SERVER, str(SITE.bootstrap.address), BALANCER])
def test_strangers_get_nothing(server: ConfigServer, path: str, client: str) -> None:
    forged = {"X-Forwarded-For": str(FIRST.address), "Forwarded": f"for={FIRST.address}", "Accept": IGNITION}
    answer = ask(server, path, client, headers=forged)
    assert answer.status == (404 if path == "/config/" else 403)
    assert b"kubeconfig" not in answer.body
    assert len(answer.body) < 200


def test_nobody_gets_the_config_of_another_role(server: ConfigServer) -> None:
    for client, path in ((FIRST, "/config/worker"), (WORKER, "/config/master"), (FIRST, "/config/infra")):
        answer = ask(server, path, str(client.address))
        assert (answer.status, b"ignition" in answer.body) == (403, False)
    assert "gets that config alone" in written(server, str(FIRST.address), status=403)["because"]


def test_workers_wait_until_there_is_a_control_plane(server: ConfigServer, assets: Path) -> None:
    """500, after which Ignition asks again; a server for workers too is another word on its command line."""
    assert ask(server, "/config/worker", str(WORKER.address)).status == 500
    with config_server(SITE, assets, SERVER, free_port(), pools=("master", "worker")) as both:
        answer = ask(both, "/config/worker", str(WORKER.address))
        expected = both.configs / "join" / f"{SITE.fqdn(WORKER)}.kubeconfig"
        assert files_in(answer.config)[KUBECONFIG] == expected.read_bytes()
        assert ask(both, "/config/master", str(WORKER.address)).status == 403


@pytest.mark.parametrize(
    ("accept", "status", "version"),
    [
        (IGNITION, 200, "3.2.0"),
        ("", 200, "3.2.0"),
        ("*/*", 200, "3.2.0"),
        ("application/vnd.coreos.ignition+json;version=3.1.0", 200, "3.1.0"),
        ("application/vnd.coreos.ignition+json;version=2.4.0", 500, None),
        ("application/vnd.coreos.ignition+json;version=4.0.0", 400, None),
    ],
)
def test_the_accept_header_picks_the_spec(server: ConfigServer, accept: str, status: int, version: str | None) -> None:
    answer = ask(server, "/config/master", str(FIRST.address), headers={"Accept": accept} if accept else {})
    assert answer.status == status
    if version:
        assert answer.config["ignition"]["version"] == version


def test_health_is_told_to_all_and_not_written_down(server: ConfigServer) -> None:
    def told() -> list[str]:
        return [str(line) for line in server.lines() if "/healthz" in str(line)]

    for method in ("GET", "HEAD"):
        answer = ask(server, "/healthz", STRANGER, method)
        assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "0")
    assert ask(server, "/healthz", BALANCER, first=LOCAL).status == 200
    assert ask(server, "/healthz/x", STRANGER).status == 404
    eventually(lambda: bool(told()), "what is no health check is written down")
    assert ["/healthz/x" in line for line in told()] == [True]


# Through the load balancer


def test_a_machine_is_known_through_the_load_balancer(server: ConfigServer) -> None:
    answer = ask(server, "/config/master", BALANCER, first=proxied(str(SECOND.address)))
    expected = server.configs / "join" / f"{SITE.fqdn(SECOND)}.kubeconfig"
    assert files_in(answer.config)[KUBECONFIG] == expected.read_bytes()
    old = f"PROXY TCP4 {FIRST.address} {SERVER} 40000 22623\r\n".encode()
    assert ask(server, "/config/master", BALANCER, first=old).status == 200
    assert ask(server, "/config/master", BALANCER, first=proxied(STRANGER)).status == 403
    assert ask(server, "/config/master", BALANCER, first=LOCAL).status == 403
    assert "PROXY protocol" in written(server, BALANCER, status=403)["because"]


@pytest.mark.parametrize("client", [str(FIRST.address), STRANGER])
@pytest.mark.parametrize("header", [proxied(str(SECOND.address)), b"PROXY TCP4 127.0.0.12 127.0.0.1 1 2\r\n"])
def test_a_load_balancers_word_is_taken_from_no_one_else(server: ConfigServer, client: str, header: bytes) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(server, "/config/master", client, first=header)
    assert "no load balancer" in written(server, client, status=400)["because"]


@pytest.mark.parametrize("header", [b"PROXY TCP4 nonsense\r\n", LOCAL[:12] + b"\x99\x11\0\0", LOCAL[:14] + b"\xff\xff"])
def test_a_load_balancer_that_talks_nonsense_is_turned_away(server: ConfigServer, header: bytes) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(server, "/config/master", BALANCER, first=header)


def test_a_header_in_single_bytes(server: ConfigServer) -> None:
    with connected(server, BALANCER) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in proxied(str(FIRST.address)):
            plain.sendall(bytes([byte]))
            time.sleep(0.002)
        with server.trust().wrap_socket(plain, server_hostname=server.host) as client:
            client.sendall(b"HEAD /config/master HTTP/1.0\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 200 ")


# Those who do not behave


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /config/master HTTP/1.1\r\nX: " + b"x" * 100_000, 431),
        (b"GET /config/" + b"x" * 100_000, 414),
        (b"GET /config/" + b"x" * 5000 + b" HTTP/1.1\r\n\r\n", 404),
        (b"GET /config/..%2f..%2fetc HTTP/1.1\r\n\r\n", 403),
        (b"GET /config/../site.json HTTP/1.1\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"hello\r\n\r\n", 400),
        (b"POST /config/master HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 405),
        (b"DELETE /healthz HTTP/1.1\r\n\r\n", 405),
        (b"GET /healthz HTTP/3.0\r\n\r\n", 505),
    ],
)
def test_what_is_no_good_request_is_told(server: ConfigServer, sent: bytes, status: int) -> None:
    with secure(server, str(FIRST.address)) as client:
        client.sendall(sent)
        assert client.recv(4096).startswith(f"HTTP/1.1 {status} ".encode())


def test_many_requests_over_one_connection_without_waiting(server: ConfigServer) -> None:
    with secure(server, str(FIRST.address)) as client:
        client.sendall(b"HEAD /config/master HTTP/1.1\r\n\r\n" * 500 + b"GET /x HTTP/1.0\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert (received.count(b"HTTP/1.1 200 "), received.count(b"HTTP/1.1 404 ")) == (500, 1)


def test_without_tls_nobody_gets_in(server: ConfigServer) -> None:
    with connected(server, str(FIRST.address)) as client:
        client.sendall(b"GET /config/master HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(100) == b""
    assert written(server, str(FIRST.address), status=400)["because"] == "that is not TLS"


def test_a_client_that_does_not_trust_the_server_is_in_the_ledger(server: ConfigServer) -> None:
    """The usual reason for a machine that waits for ever: it has another site's CA."""
    with connected(server, str(FIRST.address)) as plain, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(plain, server_hostname=server.host)
    assert "unknown ca" in written(server, str(FIRST.address), status=400)["because"]


def test_five_hundred_at_once_beside_silent_and_slow_ones(fresh: ConfigServer) -> None:
    before = fresh.memory()
    body = len(ask(fresh, "/config/master", str(FIRST.address)).body)
    context = fresh.trust()
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for index in range(300):
            silent = stack.enter_context(connected(fresh, str(SECOND.address)))
            # Nothing, half of a TLS record, and one that never ends.
            silent.sendall((b"", b"\x16\x03\x01\x02\x00\x01\x00", b"\x16\x03\x01\x3f\xff" + b"x" * 9000)[index % 3])
        for _ in range(50):
            slow = stack.enter_context(secure(fresh, str(SECOND.address)))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(b"GET /config/master HTTP/1.1\r\n\r\n" * 20)
        started = time.monotonic()
        taken: dict[ssl.SSLSocket, int] = {}
        for _ in range(500):
            client = stack.enter_context(
                context.wrap_socket(
                    connected(fresh, str(FIRST.address)), server_hostname=fresh.host, do_handshake_on_connect=False
                )
            )
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
            taken[client] = -1
        while selector.get_map():
            events = selector.select(timeout=PATIENCE)
            assert events, "clients are left without an answer"
            for key, _ in events:
                client = key.fileobj  # type: ignore[assignment]
                try:
                    if taken[client] < 0:
                        client.do_handshake()
                        client.sendall(b"GET /config/master HTTP/1.0\r\n\r\n")
                        taken[client] = 0
                        selector.modify(client, selectors.EVENT_READ)
                    while piece := client.recv(1 << 16):
                        taken[client] += len(piece)
                    selector.unregister(client)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
        seconds = time.monotonic() - started
        print(f"\n500 clients: {seconds:.1f} s, {(fresh.memory() - before) >> 10} MiB more than {before >> 10} MiB")
        assert min(taken.values()) > body
        assert seconds < PATIENCE
        assert fresh.memory() - before < 80 * 1024


def test_more_than_it_has_room_for(fresh: ConfigServer) -> None:
    """Whoever has been still for longest makes room."""
    with contextlib.ExitStack() as stack:
        for _ in range(1100):
            with contextlib.suppress(TimeoutError):
                stack.enter_context(connected(fresh))
        assert ask(fresh, "/config/master", str(FIRST.address)).status == 200


def test_who_is_slow_to_come_in_is_turned_away(fresh: ConfigServer) -> None:
    with connected(fresh, str(FIRST.address)) as slow, connected(fresh, BALANCER) as half:
        slow.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        half.sendall(b"PROXY TCP4 ")
        started, used = time.monotonic(), cpu_seconds(fresh)
        for client in (slow, half):
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(100) == b""
        assert time.monotonic() - started > 8
        assert cpu_seconds(fresh) - used < 0.5, "it waits, and does not ask for ever"
    assert "not in after" in written(fresh, str(FIRST.address), status=400)["because"]


def cpu_seconds(server: ConfigServer) -> float:
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Its files


def test_files_are_read_again_when_they_change(fresh: ConfigServer) -> None:
    client, site = str(FIRST.address), fresh.configs / "site.json"
    known = site.read_bytes()
    own = fresh.configs / "join" / f"{SITE.fqdn(FIRST)}.kubeconfig"
    for content, status in ((b"{", 500), (b'{"machines": [], "balancers": []}', 403), (known, 200)):
        site.write_bytes(content)
        assert ask(fresh, "/config/master", client).status == status
    own.write_bytes(b"another")
    assert files_in(ask(fresh, "/config/master", client).config)[KUBECONFIG] == b"another"
    own.unlink()
    assert ask(fresh, "/config/master", client).status == 500
    own.write_bytes(b"another")
    (config,) = (fresh.configs / "machine-configs").glob("rendered-master-*")
    config.write_text(config.read_text().replace("mode: 420", "mode: 384"))
    modes = {entry["mode"] for entry in ask(fresh, "/config/master", client).config["storage"]["files"]}
    assert modes >= {384}
    config.write_text("spec: [")
    assert ask(fresh, "/config/master", client).status == 500
    config.unlink()
    assert ask(fresh, "/config/master", client).status == 404
    (fresh.configs / "machine-pools" / "master.yaml").unlink()
    assert ask(fresh, "/config/master", client).status == 404
    assert ask(fresh, "/healthz", STRANGER).status == 200


def test_told_to_stop_it_ends(fresh: ConfigServer) -> None:
    assert fresh.process is not None
    with secure(fresh, str(FIRST.address)), connected(fresh):
        fresh.process.send_signal(signal.SIGTERM)
        assert fresh.process.wait(PATIENCE) == 0


def test_the_ledger_does_not_grow_for_ever(fresh: ConfigServer) -> None:
    with secure(fresh, str(FIRST.address)) as client:
        for _ in range(70):
            client.sendall((b"HEAD /config/" + b"x" * 190 + b" HTTP/1.1\r\n\r\n") * 50)
            received = 0
            while received < 50:
                received += client.recv(1 << 16).count(b"HTTP/1.1 ")
    state = fresh.folder / "state"
    eventually(lambda: (state / "ledger.jsonl.1").exists(), "it is not rotated")
    assert sum(path.stat().st_size for path in state.iterdir()) < 3 << 20


def test_it_holds_on_to_nothing(server: ConfigServer) -> None:
    assert server.process is not None
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    for _ in range(30):
        ask(server, "/config/master", str(FIRST.address))
        connected(server).close()
    eventually(lambda: len(list(descriptors.iterdir())) < 15, "descriptors are left open")
