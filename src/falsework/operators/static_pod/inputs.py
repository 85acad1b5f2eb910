"""From inputs to a numbered revision: what differs, and the objects that hold it. Nothing here asks the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from falsework.kube.client import Object
from falsework.kube.resources import CONFIG_MAPS, SECRETS, Resource
from falsework.operators.static_pod.operand import Operand

READY = "operator.openshift.io/revision-ready"
"""On a revision's ConfigMap: all of its copies are there. Before that nobody may use it."""
FORCED = "forceRedeploymentReason"
CONFIG_MAP_NAMES, SECRET_NAMES = "configMaps", "secrets"
"""What a revision is made of: whoever installs it need not know the operand."""

_STATUS = "revision-status-"
_KINDS = {CONFIG_MAPS: "ConfigMap", SECRETS: "Secret"}

World = Mapping[tuple[Resource, str], Object]
"""The ConfigMaps and Secrets of a namespace, by kind and name."""


def world(config_maps: Iterable[Object], secrets: Iterable[Object]) -> World:
    found = ((CONFIG_MAPS, config_maps), (SECRETS, secrets))
    return {(resource, str(body["metadata"]["name"])): body for resource, bodies in found for body in bodies}


def status_name(revision: int) -> str:
    return f"{_STATUS}{revision}"


def copy_name(name: str, revision: int) -> str:
    return f"{name}-{revision}"


def revisions_in(config_maps: Iterable[Object]) -> dict[int, Object]:
    """Every revision there is a ConfigMap of, finished or not."""
    found = {}
    for body in config_maps:
        number = str(body["metadata"]["name"]).removeprefix(_STATUS)
        if body["metadata"]["name"] == f"{_STATUS}{number}" and number.isdecimal():
            found[int(number)] = body
    return found


def is_finished(body: Object) -> bool:
    return (body["metadata"].get("annotations") or {}).get(READY) == "true"


def newest_finished(seen: World) -> int:
    revisions = revisions_in(body for (resource, _), body in seen.items() if resource is CONFIG_MAPS)
    return max((number for number, body in revisions.items() if is_finished(body)), default=0)


def missing(operand: Operand, seen: World) -> list[str]:
    return [_spoken(resource, name) for resource, name in _inputs(operand) if (resource, name) not in seen]


def difference(operand: Operand, seen: World, latest: int, forced: str) -> str:
    """Why the latest revision is not what the inputs are now; empty if it is."""
    if not latest:
        return "the first revision"
    status = seen.get((CONFIG_MAPS, status_name(latest))) or {}
    reasons = [reason for resource, name in _inputs(operand) if (reason := _changed(resource, name, seen, latest))]
    listed = (status.get("data") or {}).get
    if set(str(listed(CONFIG_MAP_NAMES, "")).split()) != set(operand.all_config_maps) or set(
        str(listed(SECRET_NAMES, "")).split()
    ) != set(operand.secrets):
        reasons.append("the list of inputs has changed")
    if forced != str(listed(FORCED) or ""):
        reasons.append(f"redeployment is forced: {forced}" if forced else "redeployment is no longer forced")
    return "; ".join(reasons)


def contents(operand: Operand, seen: World) -> list[dict[str, Any]]:
    """Of all inputs, as they are now."""
    return [_content(seen[key]) for key in _inputs(operand)]


def status_object(operand: Operand, revision: int, reason: str, forced: str) -> Object:
    """The revision itself, not ready yet. Its copies belong to it, and go with it."""
    metadata = {"name": status_name(revision), "namespace": operand.namespace, "annotations": {READY: "false"}}
    data = {
        "revision": str(revision),
        "reason": reason,
        FORCED: forced,
        CONFIG_MAP_NAMES: " ".join(operand.all_config_maps),
        SECRET_NAMES: " ".join(operand.secrets),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def copies(operand: Operand, seen: World, revision: int, owner: Object) -> Iterator[tuple[Resource, Object]]:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    for resource, name in _inputs(operand):
        metadata = {
            "name": copy_name(name, revision),
            "namespace": operand.namespace,
            "ownerReferences": [reference],
        }
        body = {"apiVersion": "v1", "kind": _KINDS[resource], "metadata": metadata, **_content(seen[resource, name])}
        yield resource, body


def _inputs(operand: Operand) -> Iterator[tuple[Resource, str]]:
    yield from ((CONFIG_MAPS, name) for name in operand.all_config_maps)
    yield from ((SECRETS, name) for name in operand.secrets)


def _changed(resource: Resource, name: str, seen: World, latest: int) -> str:
    copy = seen.get((resource, copy_name(name, latest)))
    if copy is None:
        return f"{_spoken(resource, copy_name(name, latest))} is not there"
    return "" if _content(copy) == _content(seen[resource, name]) else f"{_spoken(resource, name)} has changed"


def _content(body: Object) -> dict[str, Any]:
    return {key: body[key] for key in ("type", "data", "binaryData") if body.get(key)}


def _spoken(resource: Resource, name: str) -> str:
    return f"{_KINDS[resource].lower()}/{name}"
