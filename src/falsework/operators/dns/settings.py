"""What the cluster's DNS is to be: read from DNS `default`, with every mistake said in words.

What is read here ends up in a configuration language: names, zones and addresses are checked, so that none of them can
be anything else there.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from falsework.errors import FalseworkError
from falsework.kube.client import Object

CLUSTER_DOMAIN = "cluster.local"
NODES_OWN = "/etc/resolv.conf"
"""Instead of an upstream: those of the node the pod is on."""

_POLICIES = {"": "random", "Random": "random", "RoundRobin": "round_robin", "Sequential": "sequential"}
_LOG_CLASSES = {"": "error", "Normal": "error", "Debug": "denial error", "Trace": "all"}
_MOST_UPSTREAMS = 15
_POSITIVE_TTL, _NEGATIVE_TTL = 900, 30

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ZONE = re.compile(r"([a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?\.?")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s|us|ns)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Forwarding:
    upstreams: tuple[str, ...]
    policy: str
    """Which of several is asked: random, round_robin or sequential."""
    by_tcp: bool = False


@dataclass(frozen=True)
class Server:
    """Zones that others know about."""

    name: str
    zones: tuple[str, ...]
    forwarding: Forwarding


@dataclass(frozen=True)
class Settings:
    servers: tuple[Server, ...]
    forwarding: Forwarding
    """Of all other names that are not the cluster's own."""
    positive_ttl: int
    negative_ttl: int
    log_class: str


def settings_of(dns: Object) -> Settings:
    spec = dns.get("spec") or {}
    servers = tuple(_server(entry) for entry in spec.get("servers") or ())
    _check_told_apart(servers)
    cache = spec.get("cache") or {}
    return Settings(
        servers,
        _upstream_resolvers(spec.get("upstreamResolvers") or {}),
        _seconds(cache.get("positiveTTL"), "positiveTTL") or _POSITIVE_TTL,
        _seconds(cache.get("negativeTTL"), "negativeTTL") or _NEGATIVE_TTL,
        _LOG_CLASSES.get(str(spec.get("logLevel") or ""), "error"),
    )


def _server(entry: Object) -> Server:
    name = str(entry.get("name") or "")
    if not _NAME.fullmatch(name):
        raise _mistake(f"{name or 'nothing'!r} is no name for a server", "spec.servers")
    zones = tuple(_zone(str(zone)) for zone in entry.get("zones") or ())
    if not zones:
        raise _mistake(f"server {name} has no zones", "spec.servers")
    plugin = entry.get("forwardPlugin") or {}
    upstreams = tuple(_upstream(str(one)) for one in plugin.get("upstreams") or ())
    return Server(name, zones, _forwarding(upstreams, plugin, f"server {name}"))


def _upstream_resolvers(spec: Object) -> Forwarding:
    """By default the node's own, in their order: the first one is the one that is meant."""
    entries = spec.get("upstreams") or [{"type": "SystemResolvConf"}]
    return _forwarding(tuple(map(_resolver, entries)), {"policy": "Sequential", **spec}, "spec.upstreamResolvers")


def _resolver(entry: Object) -> str:
    kind = entry.get("type")
    if kind == "SystemResolvConf":
        return NODES_OWN
    if kind != "Network":
        raise _mistake(f"{kind} is no type of an upstream", "spec.upstreamResolvers")
    try:
        return _address_and_port(ipaddress.ip_address(str(entry.get("address"))), int(entry.get("port") or 53))
    except ValueError:
        raise _mistake(f"{entry.get('address')!r} is no address", "spec.upstreamResolvers") from None


def _forwarding(upstreams: tuple[str, ...], spec: Object, where: str) -> Forwarding:
    if not upstreams or len(upstreams) > _MOST_UPSTREAMS:
        raise _mistake(f"{where} needs 1 to {_MOST_UPSTREAMS} upstreams, and has {len(upstreams)}", where)
    policy = str(spec.get("policy") or "")
    if policy not in _POLICIES:
        raise _mistake(f"{policy} is no policy", where, fix=f"one of {', '.join(filter(None, _POLICIES))}")
    if (spec.get("transportConfig") or {}).get("transport") == "TLS":
        raise _mistake(f"{where} asks for TLS towards its upstreams, which Falsework's DNS does not do", where)
    return Forwarding(upstreams, _POLICIES[policy], by_tcp=spec.get("protocolStrategy") == "TCP")


def _zone(zone: str) -> str:
    plain = zone.lower()
    if not _ZONE.fullmatch(plain):
        raise _mistake(f"{zone!r} is no zone", "spec.servers")
    plain = plain.removesuffix(".")
    if plain == CLUSTER_DOMAIN or plain.endswith(f".{CLUSTER_DOMAIN}"):
        raise _mistake(f"{zone} is the cluster's own: nobody else can be asked about it", "spec.servers")
    return plain


def _check_told_apart(servers: Iterable[Server]) -> None:
    """CoreDNS does not start with the same zone twice."""
    seen: dict[str, str] = {}
    for server in servers:
        for zone in server.zones:
            if zone in seen:
                raise _mistake(f"zone {zone} is twice in it: in {seen[zone]} and in {server.name}", "spec.servers")
            seen[zone] = server.name


def _upstream(text: str) -> str:
    """An address, with or without a port; a name would need a DNS that is not there yet."""
    try:
        place = urlsplit(f"//[{text}]" if text.count(":") > 1 and "[" not in text else f"//{text}")
        return _address_and_port(ipaddress.ip_address(place.hostname or ""), place.port or 53)
    except ValueError:
        raise _mistake(f"{text!r} is no upstream", "its upstreams", fix="an address such as 192.0.2.1:53") from None


def _address_and_port(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> str:
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def _seconds(text: object, name: str) -> int:
    """0 if nobody says it."""
    if not text:
        return 0
    parts = _DURATION.findall(str(text))
    if "".join(number + unit for number, unit in parts) != str(text):
        raise _mistake(f"{text} is no duration", f"spec.cache.{name}", fix="such as 900s or 15m")
    return int(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def _mistake(what: str, where: str, fix: str | None = None) -> FalseworkError:
    return FalseworkError(what, cause=f"dnses.operator.openshift.io/default says so in {where}", fix=fix)
