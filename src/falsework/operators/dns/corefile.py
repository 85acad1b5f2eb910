"""CoreDNS' configuration."""

from __future__ import annotations

from falsework.operators.dns.settings import CLUSTER_DOMAIN, Forwarding, Server, Settings

PORT = 5353
"""Above the ports that need rights."""
_REVERSE = "in-addr.arpa ip6.arpa"
_DENIALS = 9984
"""How many answers that there is nothing are remembered: CoreDNS' own number, which has to be said with their time."""


def corefile(settings: Settings) -> str:
    blocks = [*(_zones(server, settings) for server in settings.servers), _everything_else(settings), _who_answers()]
    return "\n".join(line for block in blocks for line in block) + "\n"


def _zones(server: Server, settings: Settings) -> list[str]:
    return [
        f"# {server.name}",
        *_block(
            " ".join(f"{zone}:{PORT}" for zone in server.zones),
            _metrics(),
            *_forward(server.forwarding),
            *_manners(settings),
        ),
    ]


def _everything_else(settings: Settings) -> list[str]:
    return _block(
        f".:{PORT}",
        *_manners(settings),
        # A pod that is to end answers until nobody sends it questions any more.
        *_block("health", "lameduck 20s"),
        "ready",
        *_block(f"kubernetes {CLUSTER_DOMAIN} {_REVERSE}", "pods insecure", f"fallthrough {_REVERSE}"),
        _metrics(),
        *_forward(settings.forwarding),
        "reload",
    )


def _who_answers() -> list[str]:
    return _block(f"hostname.bind:{PORT}", "chaos")


def _manners(settings: Settings) -> list[str]:
    return [
        "bufsize 1232",
        "errors",
        *_block("log .", f"class {settings.log_class}"),
        *_block(f"cache {settings.positive_ttl}", f"denial {_DENIALS} {settings.negative_ttl}"),
    ]


def _forward(forwarding: Forwarding) -> list[str]:
    by_tcp = ["force_tcp"] if forwarding.by_tcp else []
    return _block(f"forward . {' '.join(forwarding.upstreams)}", f"policy {forwarding.policy}", *by_tcp)


def _metrics() -> str:
    """For whoever may forward a port of the pod, and nobody else."""
    return "prometheus 127.0.0.1:9153"


def _block(head: str, *lines: str) -> list[str]:
    return [f"{head} {{", *(f"    {line}" for line in lines), "}"]
