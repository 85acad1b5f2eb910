"""Where the pods of a route are, and how much of its traffic each gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from falsework.kube.client import Object
from falsework.kube.informer import Key
from falsework.operators.router.routes import Route

SERVICE = "kubernetes.io/service-name"
"""The label that says whose slice it is."""
HEAVIEST = 256


@dataclass(frozen=True, order=True)
class Endpoint:
    address: str
    port: int
    weight: int = HEAVIEST

    @property
    def place(self) -> tuple[str, int]:
        return self.address, self.port

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def service_of(piece: Object) -> Key:
    metadata = piece["metadata"]
    return metadata["namespace"], (metadata.get("labels") or {}).get(SERVICE, "")


def by_service(slices: Iterable[Object]) -> dict[Key, list[Object]]:
    result: dict[Key, list[Object]] = {}
    for piece in slices:
        result.setdefault(service_of(piece), []).append(piece)
    return result


def endpoints_of(route: Route, slices: Mapping[Key, list[Object]]) -> tuple[Endpoint, ...]:
    """Each Service's part is divided among its pods, whatever their number."""
    places = {
        target.service: (target.weight, _places(slices.get((route.namespace, target.service), ()), route.port))
        for target in route.targets
    }
    shares = {service: weight / len(found) for service, (weight, found) in places.items() if found}
    heaviest = max(shares.values(), default=0.0)
    return tuple(
        sorted(
            Endpoint(*place, _weight(shares[service], heaviest))
            for service, (_, found) in places.items()
            for place in found
        )
    )


def _weight(share: float, heaviest: float) -> int:
    """As HAProxy counts: whole numbers, and nobody who is to get something gets nothing."""
    return max(1, round(HEAVIEST * share / heaviest)) if share else 0


def _places(slices: Iterable[Object], wanted: int | str | None) -> set[tuple[str, int]]:
    return {
        (str(address), number)
        for piece in slices
        if piece.get("addressType") != "FQDN"
        for number in _ports(piece.get("ports") or (), wanted)
        for endpoint in piece.get("endpoints") or ()
        # Nobody has said otherwise: it is ready.
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for address in endpoint["addresses"]
    }


def _ports(ports: Iterable[Object], wanted: int | str | None) -> list[int]:
    offered = [port for port in ports if port.get("port") and port.get("protocol", "TCP") == "TCP"]
    if wanted is None:
        return [int(port["port"]) for port in offered[:1]]
    return [int(port["port"]) for port in offered if wanted in (port["port"], port.get("name"))]
