"""A real HAProxy that is given what it cannot take, and one that is asked to end."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from played_router import Authority, Backend, haproxy, own_address
from real_api import free_port

from eventually import PATIENCE, eventually
from falsework.haproxy import command_line
from falsework.host import packages
from falsework.kube.client import Object
from falsework.operators.router.config import Config, Place, serving, waiting
from falsework.operators.router.proxy import Proxy, RefusedError
from falsework.operators.router.routes import Route, Target

HOST = "shop.example.com"
ROUTE = Route("shop", "shop", "uid", HOST, "", None, (Target("shop", 100),))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, free_port(), free_port(), free_port())


@pytest.fixture
def proxy(place: Place) -> Proxy:
    result = Proxy(place)
    result.prepare(waiting(place))
    return result


@pytest.fixture
def running(place: Place, proxy: Proxy, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    packages.ensure(["haproxy"], print)
    with haproxy(place, tmp_path / "log") as process:
        eventually(lambda: status(place.health, "/healthz") == 503 and is_asked(place))
        yield process


@pytest.fixture
def backend() -> Iterator[Backend]:
    server = Backend("first")
    yield server
    server.stop()


def is_asked(place: Place) -> bool:
    """Whether its command line answers: a moment after its ports do."""
    try:
        return bool(command_line.ask(place.master_socket, "show proc", PATIENCE))
    except OSError:
        return False


def status(port: int, path: str = "/") -> int:
    """0 while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"Host": HOST})
        return connection.getresponse().status
    except ConnectionError:
        # One that was about to be taken when nobody listened any more is reset.
        return 0
    finally:
        connection.close()


def config(place: Place, port: int, *routes: Route) -> Config:
    endpoint: Object = {"addresses": [own_address()], "conditions": {"ready": True}}
    piece = {"endpoints": [endpoint], "ports": [{"port": port, "protocol": "TCP"}]}
    return serving(place, routes, {("shop", "shop"): [piece]}, "".join(Authority.new("x").leaf("x")).encode())


@pytest.mark.usefixtures("running")
def test_what_it_does_not_take_leaves_all_as_it_was(place: Place, proxy: Proxy, backend: Backend) -> None:
    good = config(place, backend.port, ROUTE)
    assert proxy.use(good)
    assert (status(place.http), status(place.health, "/healthz")) == (200, 200)
    assert not proxy.needs_reload(good)
    loaded = place.config.read_bytes()
    bad = replace(good, head=good.head + "\n    no such word\n")
    with pytest.raises(RefusedError):
        proxy.use(bad)
    assert place.config.read_bytes() == loaded
    assert status(place.http) == 200
    # It takes the next one again.
    assert proxy.use(good)
    assert status(place.http) == 200


def test_it_ends_with_its_last_request(running: subprocess.Popen[bytes], place: Place, proxy: Proxy) -> None:
    with socket.create_server((own_address(), 0)) as server:
        proxy.use(config(place, int(server.getsockname()[1]), ROUTE))
        with socket.create_connection(("127.0.0.1", place.http), timeout=PATIENCE) as client:
            client.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                running.send_signal(signal.SIGUSR1)
                # Others are sent elsewhere: nobody takes them here any more.
                eventually(lambda: status(place.health, "/healthz") == 0)
                assert running.poll() is None
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                assert client.recv(4096).startswith(b"HTTP/1.1 200")
        running.wait(PATIENCE)
