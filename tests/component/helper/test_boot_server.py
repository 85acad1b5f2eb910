"""The real boot server on loopback, where every machine of a small site has an address of its own."""

from __future__ import annotations

import contextlib
import http.client
import os
import selectors
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from boot_server_process import BootServer, boot_server, config_of

from asked_server import SERVER, STRANGER, Answer, answer_to, last_line, site_on_loopback
from eventually import PATIENCE, eventually
from falsework.helper import expectations
from falsework.helper.expectations import Stretch

SITE = site_on_loopback()
FIRST, SECOND = SITE.masters[:2]
OWN = f"/ignition/machines/{FIRST.name}.ign"
OTHERS = f"/ignition/machines/{SECOND.name}.ign"
KERNEL = "/falsework/kernel"


@pytest.fixture(scope="module")
def running() -> Iterator[BootServer]:
    assert os.geteuid() == 0, "the component tests run as root"
    with boot_server(SITE, address=SERVER) as server:
        (server.public / "falsework" / "kernel").write_bytes(bytes(range(256)) * 4)
        yield server


@pytest.fixture
def server(running: BootServer) -> BootServer:
    """Nobody is expected."""
    running.expect()
    return running


def ask(server: BootServer, path: str, client: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(SERVER, server.port, timeout=PATIENCE, source_address=(client, 0))
    return answer_to(connection, method, path, headers)


def connected(server: BootServer, client: str = STRANGER) -> socket.socket:
    return socket.create_connection((SERVER, server.port), PATIENCE, source_address=(client, 0))


def written(server: BootServer, asked: str, **fields: object) -> dict[str, object]:
    return last_line(server.lines, "asked", asked, fields)


def test_a_machine_gets_its_own_config_while_it_is_expected(server: BootServer) -> None:
    client = str(FIRST.address)
    assert ask(server, OWN, client).status == 403
    server.expect(FIRST.name)
    for _ in range(3):
        assert ask(server, OWN, client).body == config_of(FIRST.name)
    assert ask(server, OWN, client, "HEAD").headers["content-length"] == str(len(config_of(FIRST.name)))
    assert written(server, f"GET {OWN}", status=200)["machine"] == FIRST.name
    server.expect(SECOND.name)
    assert ask(server, OWN, client).status == 403
    assert written(server, f"GET {OWN}", status=403)["because"] == "it is not expected to boot now"


def test_nobody_gets_the_config_of_another(server: BootServer) -> None:
    server.expect(*(machine.name for machine in SITE.machines))
    for client in (str(FIRST.address), str(SITE.bootstrap.address), STRANGER):
        answer = ask(server, OTHERS, client)
        assert answer.status == 403
        assert SECOND.name.encode() not in answer.body
    assert ask(server, "/ignition/bootstrap.ign", str(SITE.bootstrap.address)).body == config_of("bootstrap")
    assert ask(server, "/ignition/bootstrap.ign", str(FIRST.address)).status == 403
    # A header is not an address.
    forged = {"X-Forwarded-For": str(SECOND.address), "Host": str(SECOND.address)}
    assert ask(server, OTHERS, str(FIRST.address), **forged).status == 403
    line = written(server, f"GET {OTHERS}", machine=FIRST.name, status=403, bytes=0)
    assert str(line["because"]).startswith(f"that is the config of {SECOND.name}")


def test_an_expectation_ends_by_itself(server: BootServer) -> None:
    for seconds in (1, 5, 25, 125):
        until = time.time() + seconds
        server.write_expectations(expectations.written({FIRST.name: Stretch(until=until)}))
        status = ask(server, OWN, str(FIRST.address)).status
        # An answer that took longer than that says nothing.
        if time.time() < until:
            break
    assert status == 200
    time.sleep(max(0.0, until - time.time()))
    assert ask(server, OWN, str(FIRST.address)).status == 403


@pytest.mark.parametrize("content", [b"", b"{", b'{"master-0": "yes"}', None])
def test_expectations_that_cannot_be_read_are_a_no(server: BootServer, content: bytes | None) -> None:
    server.expect(FIRST.name)
    assert ask(server, OWN, str(FIRST.address)).status == 200
    if content is None:
        (server.folder / "expected.json").unlink()
    else:
        server.write_expectations(content)
    assert ask(server, OWN, str(FIRST.address)).status == 403
    assert "cannot be read" in str(written(server, f"GET {OWN}", status=403)["because"])
    server.expect(FIRST.name)
    assert ask(server, OWN, str(FIRST.address)).status == 200


def test_a_config_that_is_not_there_yet_is_worth_asking_for_again(server: BootServer) -> None:
    server.expect(FIRST.name)
    path = server.configs / "machines" / f"{FIRST.name}.ign"
    path.unlink()
    try:
        assert ask(server, OWN, str(FIRST.address)).status == 503
    finally:
        path.write_bytes(config_of(FIRST.name))


def test_boot_files_whole_and_in_parts(server: BootServer) -> None:
    whole = bytes(range(256)) * 4
    assert ask(server, KERNEL, STRANGER).body == whole
    head = ask(server, KERNEL, STRANGER, "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "1024")
    part = ask(server, KERNEL, STRANGER, Range="bytes=250-259")
    assert (part.status, part.body, part.headers["content-range"]) == (206, whole[250:260], "bytes 250-259/1024")
    assert ask(server, KERNEL, STRANGER, Range="bytes=-5").body == whole[-5:]
    beyond = ask(server, KERNEL, STRANGER, Range="bytes=1024-")
    assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */1024")


def test_links_and_tricks_do_not_lead_out(server: BootServer) -> None:
    server.expect(FIRST.name)
    folder = server.public / "falsework"
    (folder / "link").symlink_to("/etc/hostname")
    (server.public / "out").symlink_to(server.configs)
    os.mkfifo(folder / "pipe")
    paths = (
        *("/falsework/link", "/out/bootstrap.ign", "/out/machines/master-0.ign", "/falsework/pipe", "/falsework"),
        *("/falsework/../../configs/bootstrap.ign", "/%2e%2e/configs/bootstrap.ign", "//etc/hostname", "/nothing"),
        *("/falsework%2fkernel", "/falsework/kernel%00", f"http://{SERVER}{KERNEL}", "/" + "a/" * 1000 + "b"),
    )
    for path in paths:
        assert ask(server, path, str(FIRST.address)).status == 404, path


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"X: x\r\n" * 20_000, 431),
        (b"GET /" + b"x" * 100_000, 414),
        (b"\x16\x03\x01 hello\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000, 405),
        (b"GET /x HTTP/3.0\r\n\r\n", 505),
    ],
)
def test_what_is_no_request_is_told(server: BootServer, sent: bytes, status: int) -> None:
    with connected(server) as client:
        client.sendall(sent)
        assert client.recv(4096).startswith(f"HTTP/1.1 {status} ".encode())


def test_many_requests_over_one_connection_without_waiting(server: BootServer) -> None:
    with connected(server) as client:
        client.sendall(b"GET /falsework/kernel HTTP/1.1\r\nRange: bytes=0-0\r\n\r\n" * 500 + b"GET /x HTTP/1.0\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert received.count(b"HTTP/1.1 206 ") == 500
    assert received.count(b"HTTP/1.1 404 ") == 1


def test_a_request_in_single_bytes(server: BootServer) -> None:
    with connected(server) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /nothing HTTP/1.0\r\nHost: x\r\n\r\n":
            client.sendall(bytes([byte]))
        assert client.recv(100).startswith(b"HTTP/1.1 404 ")


@pytest.fixture
def crowded() -> Iterator[BootServer]:
    """A server of its own: memory is looked at."""
    with boot_server(SITE, address=SERVER) as server:
        with (server.public / "falsework" / "rootfs.img").open("wb") as file:
            file.truncate(64 << 20)
        (server.public / "falsework" / "kernel").write_bytes(b"kernel" * 10_000)
        yield server


def test_five_hundred_at_once_beside_silent_and_slow_ones(crowded: BootServer) -> None:
    """Half a thousand say nothing or little, some never take what they asked for: all others are served."""
    before = crowded.memory()
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for index in range(500):
            silent = stack.enter_context(connected(crowded))
            silent.sendall((b"", b"GET /falsework/kernel HTTP/1.1\r\nX: ", b"x" * 7000)[index % 3])
        for _ in range(50):
            slow = stack.enter_context(connected(crowded))
            slow.sendall(b"GET /falsework/rootfs.img HTTP/1.1\r\n\r\n")
        started = time.monotonic()
        taken: dict[socket.socket, int] = {}
        for _ in range(500):
            client = stack.enter_context(connected(crowded, str(FIRST.address)))
            client.sendall(b"GET /falsework/kernel HTTP/1.0\r\n\r\n")
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ)
            taken[client] = 0
        while selector.get_map():
            events = selector.select(timeout=PATIENCE)
            assert events, "clients are left without an answer"
            for key, _ in events:
                client = key.fileobj  # type: ignore[assignment]
                piece = client.recv(1 << 16)
                taken[client] += len(piece)
                if not piece:
                    selector.unregister(client)
        assert min(taken.values()) > 60_000
        assert time.monotonic() - started < PATIENCE
        assert crowded.threads() == 1
        assert crowded.memory() - before < 32 * 1024


def test_more_than_it_has_room_for(crowded: BootServer) -> None:
    """Whoever has been still for longest makes room."""
    with contextlib.ExitStack() as stack:
        for _ in range(1100):
            with contextlib.suppress(TimeoutError):
                stack.enter_context(connected(crowded))
        started = time.monotonic()
        assert ask(crowded, KERNEL, str(FIRST.address)).status == 200
        assert time.monotonic() - started < PATIENCE


def test_a_slow_request_is_told_and_ended(crowded: BootServer) -> None:
    with connected(crowded) as client, connected(crowded) as silent:
        client.sendall(b"GET /falsework/kernel HTTP/1.1\r\n")
        started = time.monotonic()
        assert client.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - started > 8
        assert silent.recv(100) == b""
    assert "not complete" in str(written(crowded, "GET /falsework/kernel HTTP/1.1", status=408)["because"])


def test_told_to_stop_it_finishes_what_it_has_begun(crowded: BootServer) -> None:
    assert crowded.process is not None
    with connected(crowded) as client, connected(crowded):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.sendall(b"GET /falsework/rootfs.img HTTP/1.1\r\n\r\n")
        received = len(client.recv(4096))
        crowded.process.send_signal(signal.SIGTERM)
        eventually(lambda: not _listens(crowded), "it still listens")
        received += sum(len(piece) for piece in iter(lambda: client.recv(1 << 20), b""))
    assert received > 64 << 20
    assert crowded.process.wait(PATIENCE) == 0
    assert crowded.lines()[-1]["bytes"] == 64 << 20


def _listens(server: BootServer) -> bool:
    try:
        connected(server).close()
    except ConnectionRefusedError:
        return False
    return True


def test_it_holds_on_to_nothing(running: BootServer) -> None:
    assert running.process is not None
    descriptors = Path(f"/proc/{running.process.pid}/fd")
    for _ in range(50):
        ask(running, KERNEL, STRANGER)
        ask(running, OWN, STRANGER)
    eventually(lambda: len(list(descriptors.iterdir())) < 15, "descriptors are left open")
