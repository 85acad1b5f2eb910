"""A router as in its pod, on loopback: its program with the rights of its manifests, a real HAProxy, and backends."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from operator_process import POD, OperatorProcess, account_of, operator_process, until
from real_api import RealApi, free_port

from eventually import PATIENCE
from falsework.assets.pki import Pair, Subject, Use, Validity, certificate_pem, issue, key_pem
from falsework.kube.client import APPLY, Client, Object
from falsework.kube.resources import ENDPOINT_SLICES, NAMESPACES, ROUTES, SECRETS
from falsework.manifests.objects import named, secret
from falsework.manifests.operators.ingress import ROUTER_NAMESPACE, router_rights
from falsework.operators.ingress.deployment import haproxy_command
from falsework.operators.router.config import Place

DOMAIN = "apps.ocp4.example.com"
CERTIFICATE = "router-certs-under-test"


def own_address() -> str:
    """Of this host, as others see it: pods are never on loopback, and the API would not believe it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect(("192.0.2.1", 9))
        return str(towards.getsockname()[0])


@dataclass(frozen=True)
class Authority:
    pair: Pair

    @classmethod
    def new(cls, name: str) -> Authority:
        return cls(issue(Subject(name), Validity.DAY, datetime.now(UTC)))

    @property
    def pem(self) -> str:
        return certificate_pem(self.pair.certificate).decode()

    def leaf(self, *names: str) -> tuple[str, str]:
        pair = issue(
            Subject(names[0]),
            Validity.DAY,
            datetime.now(UTC),
            signer=self.pair,
            uses=frozenset({Use.SERVER}),
            dns=names,
        )
        return certificate_pem(pair.certificate).decode(), key_pem(pair.key).decode()


class Backend:
    """Says its name, and what it was asked. With `held` it says nothing until that is set."""

    def __init__(
        self,
        name: str,
        tls: tuple[str, str] | None = None,
        folder: Path | None = None,
        held: threading.Event | None = None,
    ) -> None:
        asked = self.asked = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                asked.set()
                if held is not None:
                    held.wait(60)
                headers = {key.lower(): value for key, value in self.headers.items()}
                said = json.dumps({"name": name, "path": self.path, "headers": headers}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer((own_address(), 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            assert folder is not None
            file = folder / f"{name}.pem"
            file.write_text("".join(tls))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(file)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class RouterUnderTest:
    client: Client
    program: OperatorProcess
    place: Place
    authority: Authority
    namespace: str
    haproxy_log: Path

    def serve(self, service: str, *backends: Backend, ready: bool = True) -> None:
        """As the controller of EndpointSlices says it."""
        ports = sorted({one.port for one in backends})
        for port in ports:
            self._slice(f"{service}-{port}", service, port, ready)
        kept = {f"{service}-{port}" for port in ports}
        for old in self.client.list(ENDPOINT_SLICES, self.namespace, f"kubernetes.io/service-name={service}").items:
            if old["metadata"]["name"] not in kept:
                self.client.delete(ENDPOINT_SLICES, old["metadata"]["name"], self.namespace)

    def _slice(self, name: str, service: str, port: int, ready: bool) -> None:
        body = named("discovery.k8s.io/v1", "EndpointSlice", name, self.namespace, addressType="IPv4")
        body["metadata"]["labels"] = {"kubernetes.io/service-name": service}
        body["endpoints"] = [{"addresses": [own_address()], "conditions": {"ready": ready}}]
        body["ports"] = [{"name": "web", "port": port, "protocol": "TCP"}]
        if not any(one["metadata"]["name"] == name for one in self.client.list(ENDPOINT_SLICES, self.namespace).items):
            self.client.create(ENDPOINT_SLICES, body)

    def route(self, name: str, service: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
        body = named("route.openshift.io/v1", "Route", name, self.namespace)
        body["metadata"]["annotations"] = annotations or {}
        body["spec"] = {"to": {"kind": "Service", "name": service}, **spec}
        return self.client.create(ROUTES, body)

    def admitted(self, name: str) -> Object:
        """What the router says of it; empty while it has said nothing."""
        status = self.client.get(ROUTES, name, self.namespace).get("status") or {}
        return next(iter(status.get("ingress") or ()), {})

    def certify(self, authority: Authority | None = None, key: str = "") -> None:
        """The Secret of the domain's certificate, made anew: by this authority, or with a key that is another's."""
        certificate, own_key = (authority or self.authority).leaf(f"*.{DOMAIN}")
        files = {"tls.crt": certificate.encode(), "tls.key": (key or own_key).encode()}
        body = secret(CERTIFICATE, ROUTER_NAMESPACE, files, "kubernetes.io/tls")
        self.client.patch(SECRETS, CERTIFICATE, body, ROUTER_NAMESPACE, kind=APPLY)

    def is_certified_by(self, authority: Authority) -> bool:
        """Whether a new client is shown a certificate by this one."""
        context = ssl.create_default_context(cadata=authority.pem)
        with socket.create_connection(("127.0.0.1", self.place.https), timeout=30) as plain:
            try:
                context.wrap_socket(plain, server_hostname=f"any.{DOMAIN}").close()
            except ssl.SSLCertVerificationError:
                return False
        return True

    def get(
        self, host: str, path: str = "/", *, tls: bool = False, trusted: Authority | None = None, cookie: str = ""
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        """Status, what the backend said, and the headers. With TLS the certificate is checked for the host's name."""
        plain = socket.create_connection(("127.0.0.1", self.place.https if tls else self.place.http), timeout=PATIENCE)
        stream = plain
        if tls:
            context = ssl.create_default_context(cadata=(trusted or self.authority).pem)
            stream = context.wrap_socket(plain, server_hostname=host)
        connection = http.client.HTTPConnection(host)
        connection.sock = stream
        try:
            connection.request("GET", path, headers={"Host": host, **({"Cookie": cookie} if cookie else {})})
            answer = connection.getresponse()
            content = answer.read()
            said = json.loads(content) if answer.status == 200 else content.decode()
            return answer.status, said, answer.headers
        finally:
            connection.close()

    def health(self) -> int:
        """What it says of itself; 0 while nobody listens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.place.health, timeout=PATIENCE)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status
        except ConnectionError:
            # One that was about to be taken when a worker ended is reset.
            return 0
        finally:
            connection.close()


@contextlib.contextmanager
def router_under_test(api: RealApi, folder: Path, namespace: str) -> Iterator[RouterUnderTest]:
    client, authority = api.client(), Authority.new("ingress-operator@1")
    place = Place(folder / "shared", free_port(), free_port(), free_port())
    place.folder.mkdir()
    account = account_of(api, {"router_rbac.yaml": router_rights()})
    client.create(NAMESPACES, named("v1", "Namespace", namespace))
    words = [
        *(f"--domain={DOMAIN}", f"--certificate={CERTIFICATE}", f"--folder={place.folder}"),
        *(f"--http-port={place.http}", f"--https-port={place.https}", f"--health-port={place.health}"),
    ]
    try:
        with operator_process(api, [*POD, "router"], account, folder / "log", *words) as program:
            until(place.config.exists, program)
            with haproxy(place, folder / "haproxy.log"):
                router = RouterUnderTest(client, program, place, authority, namespace, folder / "haproxy.log")
                router.certify()
                yield router
    finally:
        client.delete(SECRETS, CERTIFICATE, ROUTER_NAMESPACE)
        for resource in (ROUTES, ENDPOINT_SLICES):
            for body in client.list(resource, namespace).items:
                client.delete(resource, body["metadata"]["name"], namespace)
        client.delete(NAMESPACES, namespace)


@contextlib.contextmanager
def haproxy(place: Place, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    words = ["setpriv", "--pdeathsig", "KILL", "--", *haproxy_command(place)]
    with log.open("ab") as output, subprocess.Popen(words, stdout=output, stderr=output) as child:
        try:
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(PATIENCE)
