"""Who gets which pool's config. Nothing here touches a file or the network.

A config holds secrets of the cluster, and with the credential in it one may join. A machine is known by its address,
which is leased to its MAC alone; it gets the config of its own role and no other. Everybody else gets nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus

HEALTH = "/healthz"
_CONFIG = re.compile(r"/config/([^/?]{1,64})(?:\?.*)?")


@dataclass(frozen=True)
class JoiningMachine:
    name: str
    """Its full name, which is the node's too."""
    role: str
    mac: str
    address: str


@dataclass(frozen=True)
class KnownSite:
    machines: Mapping[str, JoiningMachine]
    """By address."""
    balancers: frozenset[str]


NOBODY = KnownSite({}, frozenset())


@dataclass(frozen=True)
class Allowed:
    machine: JoiningMachine
    pool: str


@dataclass(frozen=True)
class Refused:
    status: HTTPStatus
    sentence: str
    """For the one who asked: it names nobody."""
    because: str
    """For the ledger."""


def parse_site(content: bytes) -> KnownSite:
    """ValueError says what is wrong with it."""
    data = json.loads(content)
    try:
        machines = [JoiningMachine(**{key: str(value) for key, value in one.items()}) for one in data["machines"]]
        balancers = frozenset(map(str, data["balancers"]))
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it needs machines, each with name, role, mac and address, and balancers") from None
    return KnownSite({machine.address: machine for machine in machines}, balancers)


def decide(target: str, client: str, site: KnownSite, pools: Collection[str]) -> Allowed | Refused:
    """`pools` are those this server serves."""
    asked = _CONFIG.fullmatch(target)
    if not asked:
        return Refused(HTTPStatus.NOT_FOUND, "There is nothing here.", "that is not the path of a config")
    pool, machine = asked[1], site.machines.get(client)
    if machine is None or machine.role != pool:
        return Refused(
            HTTPStatus.FORBIDDEN,
            "Configs are for machines of this site: each gets that of its role.",
            _objection(client, machine, site),
        )
    if pool not in pools:
        # Ignition asks again after this, until a server answers that has it.
        return Refused(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "This pool is not served yet.",
            f"only {', '.join(sorted(pools))} is served while there is no control plane but this",
        )
    return Allowed(machine, pool)


def _objection(client: str, machine: JoiningMachine | None, site: KnownSite) -> str:
    if machine is not None:
        return f"{machine.name} is a {machine.role} and gets that config alone"
    if client in site.balancers:
        return "the load balancer did not say for whom it asks: it has to speak the PROXY protocol"
    return "the address belongs to no machine of the site"
