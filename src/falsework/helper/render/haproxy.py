"""HAProxy: TCP to the API, the Machine Config Server and the routers. TLS is between the clients and those."""

from __future__ import annotations

from collections.abc import Sequence

from falsework.haproxy.language import section
from falsework.site import ports
from falsework.site.model import Distribution, Machine, Role, Site

PATH = "haproxy.cfg"
RUNTIME_SOCKET = "/run/haproxy/admin.sock"
STATE_FILE = "/run/haproxy/servers"
"""What is known of the servers, where somebody saves it before a reload."""
NO_STATE = "1"
"""Such a file that knows of no server: the version of its form alone."""
API_BACKEND = "api"
MCS_BACKEND = "machine-config-server"


def render(site: Site, runtime_socket: str = RUNTIME_SOCKET, state_file: str | None = None) -> str:
    sections = [
        _basics(runtime_socket, state_file),
        _statistics(),
        _frontend(API_BACKEND, ports.API),
        _control_plane(site, API_BACKEND, ports.API, "/readyz"),
        _frontend(
            MCS_BACKEND,
            ports.MACHINE_CONFIG_SERVER,
            # What it serves holds secrets of the cluster.
            "# For machines alone. Whoever else asks is in the log: a rule for `connection` would not say so.",
            f"tcp-request content reject unless {{ src 127.0.0.0/8 {site.lab.cidr} }}",
        ),
        _control_plane(site, MCS_BACKEND, ports.MACHINE_CONFIG_SERVER, "/healthz", *_telling_who_asks(site)),
    ]
    for name, port in (("ingress-http", ports.HTTP), ("ingress-https", ports.HTTPS)):
        sections += [_frontend(name, port), _ingress(site, name, port)]
    return "\n".join([f"# Load balancer for {site.domain}.", *sections])


def _basics(runtime_socket: str, state_file: str | None) -> str:
    # Without it all servers count as good after a reload, until they are checked.
    state = [f"server-state-file {state_file}"] if state_file else []
    load = ["load-server-state-from-file global"] if state_file else []
    return "\n".join(
        (
            section(
                "global",
                "# To the journal, if systemd starts it: changes of servers, and every connection when it ends.",
                "log stdout format raw local0 info",
                "user haproxy",
                "group haproxy",
                "maxconn 4000",
                "# For draining and readying servers at run time; the listeners are handed over on a reload.",
                f"stats socket {runtime_socket} mode 600 level admin expose-fd listeners",
                *state,
            ),
            section(
                "defaults",
                "log global",
                "mode tcp",
                *load,
                "# A server that has just died is not a failed request: the next one is tried.",
                "option redispatch 1",
                "retries 3",
                "timeout connect 2s",
                "timeout check 5s",
                "# Watches and shells may be silent for hours.",
                "timeout client 4h",
                "timeout server 4h",
                "timeout client-fin 30s",
                "timeout queue 10s",
            ),
        )
    )


def _statistics() -> str:
    return section(
        "listen statistics",
        f"bind :{ports.BALANCER_STATISTICS}",
        "mode http",
        "no log",
        "timeout client 1m",
        "timeout server 1m",
        "monitor-uri /healthz",
        "stats enable",
        "stats uri /",
        "stats refresh 5s",
    )


def _frontend(name: str, port: int, *settings: str) -> str:
    # Connections that got nothing are written down too: they are the ones somebody will ask about.
    return section(f"frontend {name}", f"bind :{port}", "option tcplog", *settings, f"default_backend {name}")


def _telling_who_asks(site: Site) -> tuple[str, ...]:
    """Falsework's Machine Config Server gives each machine its own config, and knows it by its address. OpenShift's
    would not understand a word of this."""
    if site.distribution is Distribution.OPENSHIFT:
        return ()
    return (
        "# With whom it is for before the connection itself, so that each machine gets what is its own.",
        "default-server send-proxy-v2 check-send-proxy",
    )


def _control_plane(site: Site, name: str, port: int, health: str, *settings: str) -> str:
    """Bootstrap and masters. A client is bound to none of them, and watches are spread by how many there are."""
    default = "default-server check check-ssl verify none inter 2s fastinter 1s downinter 500ms fall 3 rise 1"
    return section(
        f"backend {name}",
        "balance leastconn",
        f"option httpchk GET {health} HTTP/1.0",
        "http-check expect status 200",
        "# By what the server says of itself: an open port is not yet, or no longer, a good one. It is out of the way",
        "# before it stops, and back as soon as it is ready. A slow one is not a dead one, and may be the only one:",
        "# `inter` is also how long a handshake may take. Its connections are left to end by themselves: it still",
        "# answers what it has begun.",
        default,
        *settings,
        *(_server(machine, port) for machine in site.masters),
        *_backup(site, port),
    )


def _backup(site: Site, port: int) -> list[str]:
    servers = [f"{_server(machine, port)} backup" for machine in site.machines if machine.role is Role.BOOTSTRAP]
    return ["# Only while no master is ready.", *servers] if servers else []


def _ingress(site: Site, name: str, port: int) -> str:
    """Routers, which run on some of these machines; a closed port says on which they do not."""
    machines: Sequence[Machine] = ports.router_machines(site)
    return section(
        f"backend {name}",
        "# A client comes back to the same router.",
        "balance source",
        "default-server check inter 1s fall 2 rise 1",
        *(_server(machine, port) for machine in machines),
    )


def _server(machine: Machine, port: int) -> str:
    return f"server {machine.name} {machine.address}:{port}"
