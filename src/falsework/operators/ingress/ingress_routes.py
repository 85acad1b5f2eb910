"""The routes an Ingress stands for, as OpenShift makes them.

A rule without a host is no route, and neither is one for a wildcard: a route has one host. What an Ingress names and
is not there makes no route yet.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.manifests.objects import named
from falsework.operators.router.routes import EXACT, PATH_TYPE

OWNED_BY = "ingress.falsework.io/owned-by"
"""The label of such a route; its value is the Ingress' uid."""
TERMINATION = "route.openshift.io/termination"
DESTINATION = "route.openshift.io/destination-ca-certificate-secret"
_CLASS = "kubernetes.io/ingress.class"
_TERMINATIONS = ("edge", "passthrough", "reencrypt")

Find = Callable[[str], Object | None]
"""An object of the Ingress' namespace, by its name."""


def is_ours(ingress: Object, classes: set[str]) -> bool:
    """`classes` are those of this controller; an Ingress that names none is anybody's."""
    name = (ingress.get("spec") or {}).get("ingressClassName")
    old = (ingress["metadata"].get("annotations") or {}).get(_CLASS)
    return (name or old) is None or (name or old) in classes


def routes_of(ingress: Object, service: Find, secret: Find) -> list[Object]:
    """FalseworkError, if it brings something that cannot be used."""
    tls = {host: entry for entry in ingress["spec"].get("tls") or () for host in entry.get("hosts") or ()}
    result: dict[str, Object] = {}
    for host, path in _paths(ingress):
        target = (path.get("backend") or {}).get("service") or {}
        found = service(str(target.get("name"))) if target.get("name") else None
        port = _target_port(found, target.get("port") or {}) if found else None
        if port is None:
            continue
        spec: Object = {
            "host": host,
            "path": str(path.get("path") or "/"),
            "to": {"kind": "Service", "name": target["name"], "weight": 100},
            "port": {"targetPort": port},
            "wildcardPolicy": "None",
        }
        if host in tls:
            secured = _tls(ingress, tls[host], secret)
            if secured is None:
                continue
            spec["tls"] = secured
            if secured["termination"] == "passthrough":
                # Nobody sees the path of what is passed on unread.
                del spec["path"]
        route = _route(ingress, spec, is_exact="path" in spec and path.get("pathType") == EXACT)
        # What is said twice is what was said first.
        result.setdefault(route["metadata"]["name"], route)
    return list(result.values())


def named_by(ingress: Object) -> set[tuple[str, str]]:
    """Kind and name of what it needs besides."""
    spec = ingress.get("spec") or {}
    secrets = {("Secret", str(entry["secretName"])) for entry in spec.get("tls") or () if entry.get("secretName")}
    services = (((path.get("backend") or {}).get("service") or {}).get("name") for _, path in _paths(ingress))
    return secrets | {("Service", str(name)) for name in services if name}


def _paths(ingress: Object) -> Iterator[tuple[str, Object]]:
    for rule in (ingress.get("spec") or {}).get("rules") or ():
        host = str(rule.get("host") or "")
        if host and not host.startswith("*"):
            for path in (rule.get("http") or {}).get("paths") or ():
                yield host, path


def _target_port(service: Object, wanted: Object) -> int | str | None:
    """Of the pods: by its name, which is the same for all of them, or else by the number the Service gives it."""
    key, told = ("name", wanted["name"]) if wanted.get("name") else ("port", wanted.get("number"))
    for port in service["spec"].get("ports") or ():
        if port.get(key) == told:
            found: int | str = port.get("name") or port.get("targetPort") or port["port"]
            return found
    return None


def _tls(ingress: Object, entry: Object, secret: Find) -> Object | None:
    """None while its Secret is not there."""
    annotations = ingress["metadata"].get("annotations") or {}
    termination = annotations.get(TERMINATION, "edge").lower()
    if termination not in _TERMINATIONS:
        raise FalseworkError(
            f"there is no termination {termination}", fix=f"say one of {', '.join(_TERMINATIONS)} in {TERMINATION}"
        )
    result: Object = {"termination": termination, "insecureEdgeTerminationPolicy": "Redirect"}
    if entry.get("secretName") and termination != "passthrough":
        pair = _data(secret(str(entry["secretName"])), "tls.crt", "tls.key")
        if pair is None:
            return None
        result |= {"certificate": pair[0], "key": pair[1]}
    if termination == "reencrypt" and (name := annotations.get(DESTINATION)):
        authority = _data(secret(name), "tls.crt")
        if authority is None:
            return None
        result["destinationCACertificate"] = authority[0]
    return result


def _data(body: Object | None, *keys: str) -> list[str] | None:
    found = (body or {}).get("data") or {}
    if any(not found.get(key) for key in keys):
        return None
    return [base64.b64decode(found[key]).decode(errors="replace") for key in keys]


def _route(ingress: Object, spec: Object, *, is_exact: bool) -> Object:
    metadata = ingress["metadata"]
    # A blank is in no path: the same path in two ways is two routes.
    place = f"{spec['host']}{spec.get('path', '')}{' exactly' if is_exact else ''}"
    name = f"{metadata['name']}-{hashlib.sha256(place.encode()).hexdigest()[:10]}"
    result = named("route.openshift.io/v1", "Route", name, metadata["namespace"], spec=spec)
    if is_exact:
        result["metadata"]["annotations"] = {PATH_TYPE: EXACT}
    result["metadata"]["labels"] = {OWNED_BY: metadata["uid"]}
    result["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
    ]
    return result
