"""Structural schemas, and the definitions they are in.

What Falsework and the commands of the guides use has a type and is validated. Where OpenShift has more fields than
that, a record is `more=True`: what it does not know stays in the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from falsework.manifests.objects import Object, named

Schema = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
CIDR = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)/[0-9]{1,3}$"
DOMAIN = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def _with(base: Schema, **rest: Any) -> Schema:
    """Only what is given: null is no value for most keys of a schema."""
    return base | {key: value for key, value in rest.items() if value is not None}


def text(*choices: str, pattern: str | None = None, longest: int | None = None, default: str | None = None) -> Schema:
    enum = list(choices) or None
    return _with({"type": "string"}, enum=enum, pattern=pattern, maxLength=longest, default=default)


def moment() -> Schema:
    return {"type": "string", "format": "date-time"}


def whole(least: int | None = None, most: int | None = None, *, wide: bool = False) -> Schema:
    size = "int64" if wide else "int32"
    return _with({"type": "integer", "format": size}, minimum=least, maximum=most)


def truth(default: bool | None = None) -> Schema:
    return _with({"type": "boolean"}, default=default)


def number_or_text() -> Schema:
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def anything(*, nullable: bool = False) -> Schema:
    return _with({"type": "object", PRESERVE: True}, nullable=nullable or None)


def record(
    fields: dict[str, Schema] | None = None,
    required: tuple[str, ...] = (),
    *,
    more: bool = False,
    nullable: bool = False,
) -> Schema:
    return _with(
        {"type": "object"},
        properties=fields or None,
        required=list(required) or None,
        nullable=nullable or None,
        **{PRESERVE: more or None},
    )


def mapping(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def listing(
    items: Schema, *, key: str | None = None, distinct: bool = False, longest: int | None = None, nullable: bool = False
) -> Schema:
    """`key` tells entries apart, so that two owners can have entries of their own in one list."""
    kind = "map" if key else "set" if distinct else "atomic"
    result = _with({"type": "array", "items": items}, maxItems=longest, nullable=nullable or None)
    result["x-kubernetes-list-type"] = kind
    if key:
        result["x-kubernetes-list-map-keys"] = [key]
    return result


def reference() -> Schema:
    """Another object, by its name."""
    return record({"name": text()}, ("name",))


def selector() -> Schema:
    expression = record(
        {"key": text(), "operator": text(), "values": listing(text())},
        ("key", "operator"),
    )
    return record({"matchLabels": mapping(text()), "matchExpressions": listing(expression)}, nullable=True)


def conditions() -> Schema:
    return listing(
        record(
            {
                "type": text(),
                "status": text("True", "False", "Unknown"),
                "lastTransitionTime": moment(),
                "reason": text(),
                "message": text(),
            },
            ("type", "status", "lastTransitionTime"),
        ),
        key="type",
    )


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    kind: str = "string"
    description: str | None = None

    def entry(self) -> Object:
        return _with({"name": self.name, "type": self.kind, "jsonPath": self.path}, description=self.description)


def condition(kind: str, of: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{of}'


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True)
class Definition:
    """A custom resource definition, and the file OpenShift has it in."""

    file: str
    group: str
    kind: str
    plural: str
    about: str
    spec: Schema
    status: Schema | None = None
    short: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    namespaced: bool = False
    required: tuple[str, ...] = ("spec",)
    version: str = "v1"
    scaled_by: str | None = None
    """The field of the status that counts replicas, if `kubectl scale` is to work."""

    @property
    def singular(self) -> str:
        return self.kind.lower()

    def manifest(self) -> Object:
        names = _with(
            {"kind": self.kind, "listKind": f"{self.kind}List", "plural": self.plural, "singular": self.singular},
            shortNames=list(self.short) or None,
        )
        return named(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            f"{self.plural}.{self.group}",
            spec={
                "group": self.group,
                "names": names,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "versions": [self._version()],
            },
        )

    def _version(self) -> Object:
        fields = {
            "apiVersion": text(),
            "kind": text(),
            "metadata": {"type": "object"},
            "spec": self.spec,
            **({"status": self.status} if self.status is not None else {}),
        }
        schema = record(fields, self.required)
        schema["description"] = self.about
        columns = [column.entry() for column in self.columns] or None
        return _with(
            {"name": self.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            additionalPrinterColumns=columns,
            subresources=self._subresources() or None,
        )

    def _subresources(self) -> Object:
        result: Object = {"status": {}} if self.status is not None else {}
        if self.scaled_by:
            result["scale"] = {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": f".status.{self.scaled_by}",
                "labelSelectorPath": ".status.selector",
            }
        return result
