"""Structural schemas, as the API server takes them: are they ones, and is an object valid and kept whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from falsework.manifests.schema import PRESERVE, Schema

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "number": (int, float),
}
_KNOWN = {
    *("type", "format", "properties", "additionalProperties", "items", "required", "enum", "pattern", "maxLength"),
    *("minimum", "maximum", "maxItems", "nullable", "default", "description", "anyOf"),
    *("x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations"),
    PRESERVE,
}


def faults(schema: Schema, path: str = "") -> Iterator[str]:
    """Why it is none."""
    if unknown := schema.keys() - _KNOWN:
        yield f"{path}: {unknown}"
    if "type" not in schema and not schema.get("x-kubernetes-int-or-string"):
        yield f"{path}: no type"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: properties and additionalProperties"
    for name in schema.get("required", ()):
        if name not in schema.get("properties", {}):
            yield f"{path}: requires {name}, which it does not have"
    if "default" in schema:
        yield from (f"{path}: default: {fault}" for fault in problems(schema["default"], schema))
    if schema.get("x-kubernetes-list-type") == "map":
        for key in schema["x-kubernetes-list-map-keys"]:
            if key not in schema["items"].get("required", ()):
                yield f"{path}: entries need not have {key}"
    for name, entry in schema.get("properties", {}).items():
        yield from faults(entry, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from faults(schema[name], f"{path}[]")


def problems(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Why the API would refuse a value, or drop a part of it."""
    if value is None:
        if not schema.get("nullable"):
            yield f"{path}: null"
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield f"{path}: neither number nor text"
        return
    wanted = _TYPES[schema["type"]]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        yield f"{path}: no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], str(value)):
        yield f"{path}: {value!r} is not like {schema['pattern']}"
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value} is out of range"
    if isinstance(value, list):
        for place, entry in enumerate(value):
            yield from problems(entry, schema["items"], f"{path}[{place}]")
    if isinstance(value, dict):
        yield from _problems_of_object(value, schema, path)


def _problems_of_object(value: dict[str, Any], schema: Schema, path: str) -> Iterator[str]:
    yield from (f"{path}: no {name}" for name in schema.get("required", ()) if name not in value)
    known = schema.get("properties", {})
    for name, entry in value.items():
        if name in known:
            yield from problems(entry, known[name], f"{path}.{name}")
        elif "additionalProperties" in schema:
            yield from problems(entry, schema["additionalProperties"], f"{path}.{name}")
        elif not schema.get(PRESERVE) and path != ".metadata":
            yield f"{path}: {name} would be dropped"
