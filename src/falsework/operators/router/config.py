"""Routes as HAProxy's configuration.

What is not in the one file is in files called by what is in them: the one file can be replaced at once, and the one
before it is good for as long as it is needed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from falsework.haproxy.language import section
from falsework.kube.client import Object
from falsework.kube.informer import Key
from falsework.operators.router.endpoints import Endpoint, endpoints_of
from falsework.operators.router.routes import Route
from falsework.operators.router.slots import Slots, server_name

CONFIG = "haproxy.cfg"
FILES = "files"
"""The folder of everything else."""
REDIRECT = "redirect"
"""In the place of a backend: whoever comes without TLS is to come with it."""

_NOWHERE = "192.0.2.1:9 disabled"
"""The address of a free place: one that is nobody's."""
_ANNOTATION = "haproxy.router.openshift.io"
_BALANCES = ("roundrobin", "leastconn", "source", "random")
_TIMEOUT = re.compile(r"[0-9]{1,9}(us|ms|s|m|h|d)?")
_KINDS = {"": "be_http", "edge": "be_edge_http", "reencrypt": "be_secure", "passthrough": "be_tcp"}
_UNAVAILABLE = """\
HTTP/1.0 503 Service Unavailable
Cache-Control: no-cache, no-store
Connection: close
Content-Type: text/html

<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Application is not available</title></head>
<body>
<h1>Application is not available</h1>
<p>The application is currently not serving requests at this endpoint.
It may not have been started or is still starting.</p>
<p>Possible reasons: the host or the path does not exist, or it does and all pods behind it are down.</p>
</body>
</html>
"""


@dataclass(frozen=True)
class Place:
    """Where this HAProxy is."""

    folder: Path
    http: int = 80
    https: int = 443
    health: int = 1936

    @property
    def config(self) -> Path:
        return self.folder / CONFIG

    @property
    def master_socket(self) -> Path:
        return self.folder / "master.sock"

    @property
    def tls_socket(self) -> Path:
        """Behind the port for TLS, which only looks at whom a client wants to speak with."""
        return self.folder / "tls.sock"


@dataclass(frozen=True)
class Backend:
    name: str
    settings: tuple[str, ...] = ()
    server_options: str = ""
    endpoints: tuple[Endpoint, ...] = ()

    def text(self, slots: Slots) -> str:
        servers = (
            f"server {server_name(index)} {f'{one} weight {one.weight}' if one else _NOWHERE}{self.server_options}"
            for index, one in enumerate(slots)
        )
        return section(f"backend {self.name}", *self.settings, *servers)


@dataclass
class Config:
    head: str
    """All that comes before the backends of routes."""
    backends: list[Backend] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def is_like(self, other: Config) -> bool:
        """But for where pods are."""
        return self.head == other.head and [_shape(one) for one in self.backends] == [
            _shape(one) for one in other.backends
        ]

    def text(self, slots: Mapping[str, Slots]) -> str:
        return "\n".join([self.head, *(backend.text(slots[backend.name]) for backend in self.backends)])


def waiting(place: Place) -> Config:
    """Before anything is known: it runs, and says that it is not ready."""
    answer = "http-request return status 503 content-type text/plain string waiting"
    return Config("\n".join([_basics(), _health(place, answer)]))


@dataclass
class _Places:
    """Of hosts and their paths, and what is there."""

    exact: dict[str, str] = field(default_factory=dict)
    beginnings: dict[str, str] = field(default_factory=dict)
    """With a slash behind each, so that the longest that fits ends where a part of the path ends."""

    def add(self, route: Route, what: str) -> None:
        if route.is_exact:
            self.exact[f"{route.host}{route.path}"] = what
        else:
            self.beginnings[f"{route.host}{route.path}/"] = what


def serving(place: Place, routes: Iterable[Route], slices: Mapping[Key, list[Object]], certificate: bytes) -> Config:
    """`routes` have been judged, the oldest first; `certificate` is for the hosts whose routes bring none."""
    folder = _Folder(place.folder / FILES)
    plain, secure = _Places(), _Places()
    passed: dict[str, str] = {}
    shown: dict[str, str] = {}
    backends = []
    for route in routes:
        backend = _backend(route, folder, endpoints_of(route, slices))
        backends.append(backend)
        if route.termination == "passthrough":
            passed[route.host] = backend.name
        elif route.termination:
            secure.add(route, backend.name)
        if route.termination and route.insecure == "Redirect":
            plain.add(route, REDIRECT)
        elif not route.termination or route.insecure == "Allow":
            plain.add(route, backend.name)
        if route.certificate and route.termination != "passthrough":
            shown.setdefault(route.host, folder.add("pem", route.certificate.encode()))
    default = folder.add("pem", certificate)
    certificates = folder.add("list", "".join(f"{path} {host}\n" for host, path in sorted(shown.items())).encode())
    head = [
        _basics(f"errorfile 503 {folder.add('http', _UNAVAILABLE.replace(chr(10), chr(13) + chr(10)).encode())}"),
        _health(place, "http-request return status 200 content-type text/plain string ok"),
        _plain_frontend(place, _lookup(plain, folder)),
        _tls_frontend(place, folder.add_map(passed)),
        section("backend terminated", "mode tcp", f"server here unix@{place.tls_socket} send-proxy-v2"),
        _terminating_frontend(place, default, certificates, _lookup(secure, folder)),
        section("backend nobody"),
    ]
    return Config("\n".join(head), sorted(backends, key=lambda backend: backend.name), folder.files)


class _Folder:
    """Files by their content."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files: dict[str, bytes] = {}

    def add(self, kind: str, content: bytes) -> str:
        """Where it will be."""
        name = f"{hashlib.sha256(content).hexdigest()[:32]}.{kind}"
        self.files[name] = content
        return str(self._folder / name)

    def add_map(self, entries: Mapping[str, str]) -> str:
        return self.add("map", "".join(f"{key} {value}\n" for key, value in sorted(entries.items())).encode())


def _basics(*defaults: str) -> str:
    return "\n".join(
        (
            section(
                "global",
                "log stdout format raw local0 notice",
                "maxconn 20000",
                "# Fewer connections are better than none, where so many files may not be open.",
                "no strict-limits",
                "# Who still serves an old connection after so many reloads has served it long enough.",
                "mworker-max-reloads 20",
                "ssl-default-bind-options ssl-min-ver TLSv1.2",
                "tune.ssl.default-dh-param 2048",
            ),
            section(
                "defaults",
                "mode http",
                *defaults,
                "# A pod that has just died is not a failed request: the next one is tried.",
                "option redispatch 1",
                "retries 3",
                "timeout connect 5s",
                "timeout client 30s",
                "timeout client-fin 1s",
                "timeout server 30s",
                "timeout server-fin 1s",
                "timeout http-request 10s",
                "timeout http-keep-alive 300s",
                "# Web sockets, and whatever is passed through.",
                "timeout tunnel 1h",
            ),
        )
    )


def _health(place: Place, answer: str) -> str:
    return section(
        "frontend health",
        f"bind :{place.health}",
        f"{answer} if {{ path /healthz /healthz/ready }}",
        "http-request use-service prometheus-exporter if { path /metrics } { src 127.0.0.0/8 }",
        "http-request return status 404",
    )


def _plain_frontend(place: Place, lookup: Iterable[str]) -> str:
    return section(
        "frontend public",
        f"bind :{place.http}",
        *lookup,
        f"http-request redirect scheme https code 302 if {{ var(txn.backend) -m str {REDIRECT} }}",
        *_forwarded("http"),
        *_chosen(),
    )


def _tls_frontend(place: Place, hosts: str) -> str:
    return section(
        "frontend public-tls",
        "mode tcp",
        f"bind :{place.https}",
        "# Whom the client wants to speak with is in its first words.",
        "tcp-request inspect-delay 5s",
        "tcp-request content accept if { req.ssl_hello_type 1 }",
        f"use_backend %[req.ssl_sni,lower,map_str({hosts})]",
        "default_backend terminated",
    )


def _terminating_frontend(place: Place, default: str, certificates: str, lookup: Iterable[str]) -> str:
    return section(
        "frontend terminating",
        f"bind unix@{place.tls_socket} accept-proxy mode 600 ssl crt {default} crt-list {certificates}",
        *lookup,
        *_forwarded("https"),
        *_chosen(),
    )


def _lookup(places: _Places, folder: _Folder) -> tuple[str, ...]:
    """An exact path comes before those it begins with, and of these the longest is taken."""
    exact, beginnings = folder.add_map(places.exact), folder.add_map(places.beginnings)
    return (
        "http-request set-var(txn.host) req.hdr(host),host_only,lower",
        "http-request set-var(txn.path) path",
        f"http-request set-var(txn.backend) var(txn.host),concat(,txn.path),map_str({exact})",
        f"http-request set-var(txn.backend) var(txn.host),concat(,txn.path,/),map_beg({beginnings})"
        " unless { var(txn.backend) -m found }",
    )


def _forwarded(scheme: str) -> tuple[str, ...]:
    return (
        "# Programs that are told so would take it for their own setting.",
        "http-request del-header Proxy",
        "option forwardfor",
        "http-request set-header X-Forwarded-Host %[req.hdr(host)]",
        "http-request set-header X-Forwarded-Port %[dst_port]",
        f"http-request set-header X-Forwarded-Proto {scheme}",
        f"http-request add-header Forwarded for=%[src];host=%[req.hdr(host)];proto={scheme}",
    )


def _chosen() -> tuple[str, ...]:
    return ("use_backend %[var(txn.backend)] if { var(txn.backend) -m found }", "default_backend nobody")


def _backend(route: Route, folder: _Folder, endpoints: tuple[Endpoint, ...]) -> Backend:
    passed = route.termination == "passthrough"
    settings = ["mode tcp", "hash-type consistent"] if passed else []
    settings.append(f"balance {_balance(route, 'source' if passed else 'random')}")
    timeout = route.annotations.get(f"{_ANNOTATION}/timeout", "")
    if _TIMEOUT.fullmatch(timeout):
        settings.append(f"timeout {'tunnel' if passed else 'server'} {timeout}")
    if not passed and route.annotations.get(f"{_ANNOTATION}/disable_cookies", "").lower() != "true":
        settings += _stickiness(route)
    options = ""
    if route.termination == "reencrypt":
        authority = folder.add("pem", route.destination_authority.encode())
        options = f" ssl verify required ca-file {authority}"
    return Backend(backend_name(route), tuple(settings), options, endpoints)


def backend_name(route: Route) -> str:
    return f"{_KINDS[route.termination]}:{route.namespace}:{route.name}"


def _balance(route: Route, usual: str) -> str:
    asked = route.annotations.get(f"{_ANNOTATION}/balance", "")
    return asked if asked in _BALANCES else usual


def _stickiness(route: Route) -> list[str]:
    """The cookie says which pod it was, in a way that all routers understand and nobody outside."""
    name = hashlib.sha256(backend_name(route).encode()).hexdigest()[:32]
    safe = " secure attr SameSite=None" if route.termination else ""
    return [
        f"dynamic-cookie-key {route.uid}",
        f"cookie {name} insert indirect nocache httponly{safe} dynamic",
    ]


def _shape(backend: Backend) -> tuple[str, tuple[str, ...], str]:
    return backend.name, backend.settings, backend.server_options
