"""The client against servers that are no good on purpose: what they do no API server would."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
import yaml

from eventually import eventually
from falsework.assets.kubeconfig import kubeconfig
from falsework.assets.pki import Subject, Use, Validity, certificate_pem, issue, key_pem, utc_now
from falsework.errors import FalseworkError
from falsework.kube import connection
from falsework.kube.client import ApiError, Client, Unreachable
from falsework.kube.connection import Patience
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, NODES

Behaviour = Callable[[socket.socket], None]
BRIEF = Patience(connect=1, answer=1, whole=2)
LONG = Patience(connect=60, answer=120, whole=240)
"""Where an answer comes: on a busy host it may take its time."""
SILENCE = 60.0


class Server:
    """Says to every connection what it is told to, and counts them."""

    def __init__(self, folder: Path, behave: Behaviour) -> None:
        signer = issue(Subject("signer"), Validity.DAY, utc_now())
        pair = issue(
            Subject("server"),
            Validity.DAY,
            utc_now(),
            signer=signer,
            uses=frozenset({Use.SERVER}),
            addresses=[ip_address("127.0.0.1")],
        )
        (folder / "pair.pem").write_bytes(certificate_pem(pair.certificate) + key_pem(pair.key))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "pair.pem")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._behave = behave
        self.connections = 0
        self.kubeconfig = folder / "kubeconfig"
        content = kubeconfig(
            "broken",
            f"https://127.0.0.1:{self._listener.getsockname()[1]}",
            certificate_pem(signer.certificate),
            "admin",
            certificate_pem(pair.certificate),
            key_pem(pair.key),
        )
        self.kubeconfig.write_bytes(content)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(accepted,), daemon=True).start()

    def _talk(self, accepted: socket.socket) -> None:
        with accepted, contextlib.suppress(OSError):
            accepted.settimeout(LONG.answer)
            with self._context.wrap_socket(accepted, server_side=True) as secure:
                self._behave(secure)

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[Behaviour], Server]]:
    servers: list[Server] = []

    def start(behave: Behaviour) -> Server:
        servers.append(Server(tmp_path, behave))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def read_request(sock: socket.socket) -> None:
    """One whole request: its body comes in a piece of its own."""
    received = sock.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += sock.recv(65536)


def answering(*answers: bytes) -> Behaviour:
    """One answer for each request, then the end."""

    def behave(sock: socket.socket) -> None:
        for answer in answers:
            read_request(sock)
            sock.sendall(answer)

    return behave


def answer(status: str, body: bytes, *headers: bytes) -> bytes:
    head = [f"HTTP/1.1 {status}".encode(), b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def chunked(*lines: bytes) -> bytes:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks


def drip(sock: socket.socket) -> None:
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        sock.sendall(b" ")
        time.sleep(0.1)


BROKEN: dict[str, Behaviour] = {
    "says nothing": lambda _: time.sleep(SILENCE),
    "hangs up": lambda _: None,
    "hangs up when asked": read_request,
    "is not HTTP": answering(b"220 mail.example ESMTP\r\n"),
    "is binary": answering(bytes(range(256)) * 400),
    "a header without end": answering(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000),
    "half an answer": answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"),
    "a body that never comes": drip,
    "is not JSON": answering(answer("200 OK", b"<html>")),
    "is no object": answering(answer("200 OK", b"[1]")),
    "too deep": answering(answer("200 OK", b"[" * 100_000)),
    "a broken chunk": answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_api_is_unreachable(served: Callable[[Behaviour], Server], case: str) -> None:
    client = Client.from_kubeconfig(served(BROKEN[case]).kubeconfig, patience=BRIEF)
    began = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        client.get(NODES, "x")
    assert time.monotonic() - began < SILENCE
    assert "PRIVATE" not in str(caught.value)


def test_an_answer_without_end_is_cut(served: Callable[[Behaviour], Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BODY_LIMIT", 10_000)
    server = served(answering(answer("200 OK", b" " * 1_000_000)))
    with pytest.raises(Unreachable, match="no end"):
        Client.from_kubeconfig(server.kubeconfig, patience=LONG).get(NODES, "x")


def test_errors_that_are_no_status_are_told_as_they_are(served: Callable[[Behaviour], Server]) -> None:
    server = served(answering(answer("502 Bad Gateway", b"<html>no backend</html>")))
    with pytest.raises(ApiError, match="no backend") as caught:
        Client.from_kubeconfig(server.kubeconfig, patience=LONG).get(NODES, "x")
    assert caught.value.status == 502


def test_too_many_requests_are_waited_for(served: Callable[[Behaviour], Server]) -> None:
    busy = answer("429 Too Many Requests", b"{}", b"Retry-After: 1")
    server = served(answering(busy, answer("201 Created", b'{"kind": "ConfigMap"}')))
    client, began = Client.from_kubeconfig(server.kubeconfig, patience=LONG), time.monotonic()
    assert client.create(CONFIG_MAPS, {"metadata": {"name": "x"}}, "default") == {"kind": "ConfigMap"}
    assert time.monotonic() - began > 0.9


def test_only_what_may_be_asked_twice_is_asked_twice(served: Callable[[Behaviour], Server]) -> None:
    """The connection is good for one answer and breaks in the middle of the next."""

    def behave(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(answer("200 OK", b'{"n": 1}'))
        sock.recv(65536)

    server = served(behave)
    client = Client.from_kubeconfig(server.kubeconfig, patience=LONG)
    assert client.get(NODES, "x") == {"n": 1}
    assert client.get(NODES, "x") == {"n": 1}
    assert server.connections == 2
    with pytest.raises(Unreachable):
        client.create(NODES, {"metadata": {"name": "x"}})
    assert server.connections == 2


WATCHES: dict[str, tuple[bytes, type[FalseworkError]]] = {
    "not JSON": (chunked(b"<html>\n"), Unreachable),
    "no event": (chunked(b'{"a": 1}\n'), Unreachable),
    "no object": (chunked(b'{"type": "ADDED", "object": 1}\n'), Unreachable),
    "cut off": (chunked(b'{"type": "ADD'), Unreachable),
    "gone": (chunked(b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}\n'), ApiError),
}


@pytest.mark.parametrize("case", WATCHES)
def test_a_broken_watch_ends_with_an_error(served: Callable[[Behaviour], Server], case: str) -> None:
    content, error = WATCHES[case]
    client = Client.from_kubeconfig(served(answering(content)).kubeconfig, patience=LONG)
    with pytest.raises(error):
        list(client.watch(NODES))


def test_a_line_in_pieces_is_one_event(served: Callable[[Behaviour], Server]) -> None:
    pieces = (b'{"type": "ADD', b'ED", "object": {"n": 1}}\n{"type": "DELETED", "object"', b': {"n": 2}}\n')
    server = served(answering(chunked(*pieces) + b"0\r\n\r\n"))
    client = Client.from_kubeconfig(server.kubeconfig, patience=LONG)
    assert [(event.type, event.object) for event in client.watch(NODES)] == [
        ("ADDED", {"n": 1}),
        ("DELETED", {"n": 2}),
    ]


def test_an_informer_does_not_hammer_a_broken_server(served: Callable[[Behaviour], Server]) -> None:
    server = served(answering(answer("200 OK", b"<html>")))
    troubles: list[FalseworkError] = []
    began = time.monotonic()
    client = Client.from_kubeconfig(server.kubeconfig, patience=LONG)
    informer = Informer(client, NODES, on_trouble=troubles.append).start()
    eventually(lambda: server.connections >= 6, patience=LONG.whole)
    took = time.monotonic() - began
    informer.stop()
    assert not informer.is_synced
    # Its pauses grow: 0.1, 0.2, 0.4, 0.8 and 1.6 s, a third more or less.
    assert took > 2
    assert troubles


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text.replace("server: https:", "server: http:"), "https://host:port"),
        (lambda text: text.replace("server:", "insecure-skip-tls-verify: true\n    server:"), "trusts any server"),
        (lambda text: text.replace("client-key-data:", "exec: {command: x}\n    client-key-data:"), "it uses exec"),
        (lambda text: text.replace("current-context: admin", "current-context: other"), "none of its contexts"),
        (lambda text: text.replace("certificate-authority-data", "x"), "whom to trust"),
        (lambda _: "[", "not YAML"),
        (lambda _: "1", "not a mapping"),
        (lambda _: "{}", "none of its contexts"),
        (
            lambda text: text.replace("client-key-data: ", f"client-key-data: {base64.b64encode(b'x').decode()} #"),
            "SSLError",
        ),
        (lambda text: text.replace("client-key-data: ", "client-key-data: '%%%' #"), "not base64"),
    ],
)
def test_a_kubeconfig_without_proof_is_refused(
    served: Callable[[Behaviour], Server], change: Callable[[str], str], why: str
) -> None:
    path = served(answering()).kubeconfig
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before
    with pytest.raises(FalseworkError, match=why) as caught:
        Client.from_kubeconfig(path)
    assert str(path) in str(caught.value)


def test_a_kubeconfig_may_name_files(served: Callable[[Behaviour], Server], tmp_path: Path) -> None:
    path = served(answering(answer("200 OK", b"{}"))).kubeconfig
    config = yaml.safe_load(path.read_text())
    user = config["users"][0]["user"]
    for key in ("client-certificate", "client-key"):
        (tmp_path / f"{key}.pem").write_bytes(base64.b64decode(user.pop(f"{key}-data")))
        user[key] = f"{key}.pem"
    path.write_text(yaml.safe_dump(config))
    assert Client.from_kubeconfig(path, patience=LONG).get(NODES, "x") == {}
    with pytest.raises(FalseworkError, match="cannot be read"):
        Client.from_kubeconfig(tmp_path / "nothing")
