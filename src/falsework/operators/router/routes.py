"""Which routes are served, and why others are not.

Every router decides by itself, so whatever it decides must follow from the objects alone: two routers that know the
same routes serve the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from falsework.kube.client import Object
from falsework.kube.informer import Key
from falsework.operators.router.pem import bundle_fault, pair_fault

CLAIMED = "HostAlreadyClaimed"
INVALID = "ExtendedValidationFailed"
NOT_ADMITTED = "RouteNotAdmitted"
PATH_TYPE = "ingress.falsework.io/path-type"
"""The annotation of a route for its path alone, and nothing below it: a route has no field for that."""
EXACT = "Exact"
_LONGEST_LABEL = 63
_NO_AUTHORITY = (
    "spec.tls.destinationCACertificate: Required value: the certificate of the authority that signed the pods' own. "
    "This cluster has no service authority that could stand in for it"
)


@dataclass(frozen=True)
class Target:
    """A Service, and how much of the traffic is its."""

    service: str
    weight: int


@dataclass(frozen=True)
class Route:
    namespace: str
    name: str
    uid: str
    host: str
    path: str
    """Without a slash at its end: empty for all of the host. An exact one is as it is written."""
    port: int | str | None
    """A port of the pods, by its number or by its name; None is the first."""
    targets: tuple[Target, ...]
    termination: str = ""
    insecure: str = ""
    certificate: str = field(default="", repr=False)
    """With the chain behind it and its key."""
    destination_authority: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    is_exact: bool = False
    """Whether it is for this path and no other."""

    @property
    def key(self) -> Key:
        return self.namespace, self.name


@dataclass(frozen=True)
class Refusal:
    reason: str
    message: str


@dataclass
class Verdicts:
    admitted: list[Route] = field(default_factory=list)
    """The oldest first."""
    refused: dict[Key, Refusal] = field(default_factory=dict)


def judged(bodies: Iterable[Object], refused_already: Mapping[Key, Refusal] | None = None) -> Verdicts:
    """A host belongs to the namespace whose route had it first; and a path below it to the route that did.

    `refused_already` are those the proxy itself would not have: they claim nothing either."""
    result = Verdicts(refused=dict(refused_already or {}))
    owners: dict[str, Route] = {}
    exposed: dict[tuple[str, str, bool], Route] = {}
    for body in sorted(bodies, key=_age):
        route = route_of(body)
        if route.key in result.refused:
            continue
        owner = owners.get(route.host)
        place = route.host, route.path, route.is_exact
        older = exposed.get(place)
        if fault := fault_of(body, route):
            result.refused[route.key] = fault
        elif owner is not None and owner.namespace != route.namespace:
            message = f"a route in another namespace holds {route.host} and is older than {route.name}"
            result.refused[route.key] = Refusal(CLAIMED, message)
        elif older is not None:
            message = f"route {older.name} already exposes {route.host}{route.path} and is older"
            result.refused[route.key] = Refusal(CLAIMED, message)
        else:
            owners.setdefault(route.host, route)
            exposed[place] = route
            result.admitted.append(route)
    return result


def route_of(body: Object) -> Route:
    metadata, spec = body["metadata"], body["spec"]
    tls = spec.get("tls") or {}
    pem = [str(tls.get(part) or "").strip() for part in ("certificate", "caCertificate", "key")]
    path, annotations = str(spec.get("path") or ""), metadata.get("annotations") or {}
    is_exact = bool(path) and annotations.get(PATH_TYPE) == EXACT
    return Route(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        str(spec.get("host") or "").lower(),
        path if is_exact else path.rstrip("/"),
        (spec.get("port") or {}).get("targetPort"),
        tuple(
            Target(str(target["name"]), int(target.get("weight", 100)))
            for target in (spec["to"], *(spec.get("alternateBackends") or ()))
        ),
        str(tls.get("termination") or ""),
        str(tls.get("insecureEdgeTerminationPolicy") or "None"),
        "\n".join([*filter(None, pem), ""]) if pem[0] and pem[2] else "",
        str(tls.get("destinationCACertificate") or ""),
        annotations,
        is_exact,
    )


def fault_of(body: Object, route: Route) -> Refusal | None:
    """What of one route alone cannot be served."""
    spec = body["spec"]
    tls = spec.get("tls") or {}
    if spec.get("wildcardPolicy", "None") not in ("None", ""):
        return Refusal(NOT_ADMITTED, "wildcard routes are not allowed")
    if not route.host:
        return Refusal(INVALID, "spec.host: Required value: the route's name and namespace are too long to make one of")
    if not _is_plain(route.path):
        return Refusal(INVALID, "spec.path: Invalid value: blanks, quotes and control characters have no place in it")
    faults: list[tuple[str, str]] = []
    if tls.get("externalCertificate"):
        faults.append(("externalCertificate", "certificates are taken from spec.tls.certificate alone"))
    if bool(tls.get("certificate")) != bool(tls.get("key")):
        faults.append(("key", "a certificate needs its key, and a key its certificate"))
    if route.certificate:
        faults.append(("certificate", pair_fault(route.certificate)))
    if tls.get("caCertificate"):
        faults.append(("caCertificate", bundle_fault(str(tls["caCertificate"]))))
    if route.termination == "reencrypt" and route.destination_authority:
        faults.append(("destinationCACertificate", bundle_fault(route.destination_authority)))
    found = [f"spec.tls.{where}: Invalid value: {fault}" for where, fault in faults if fault]
    if route.termination == "reencrypt" and not route.destination_authority:
        found.append(_NO_AUTHORITY)
    return Refusal(INVALID, "; ".join(found)) if found else None


def _is_plain(path: str) -> bool:
    return path.isprintable() and not any(sign in path for sign in " \"'#\\")


def _age(body: Object) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return str(metadata["creationTimestamp"]), metadata["namespace"], metadata["name"]


def named_host(body: Object, domain: str) -> str:
    """The host of a route that says none; empty if no name can be made for it."""
    metadata, spec = body["metadata"], body["spec"]
    first = str(spec.get("subdomain") or f"{metadata['name']}-{metadata['namespace']}")
    # A route may be called what no host can be called.
    label = first.replace(".", "-") if not spec.get("subdomain") else first
    return f"{label}.{domain}" if all(len(part) <= _LONGEST_LABEL for part in label.split(".")) else ""
