"""Label selectors, and which pool a Node belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from falsework.kube.client import Object

MASTER, WORKER = "master", "worker"


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A selector that says nothing selects nothing: a pool is for machines that are meant."""
    exact = (selector or {}).get("matchLabels") or {}
    expressions = (selector or {}).get("matchExpressions") or ()
    if not exact and not expressions:
        return False
    return all(labels.get(key) == value for key, value in exact.items()) and all(
        _holds(expression, labels) for expression in expressions
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = str(expression.get("key", "")), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def labels_of(body: Object) -> dict[str, str]:
    return dict(body["metadata"].get("labels") or {})


def pool_of(node: Object, pools: Iterable[Object]) -> str | None:
    """A master is in its pool whatever else it is; a pool of a person's own goes before the workers'."""
    labels = labels_of(node)
    fitting = {
        str(pool["metadata"]["name"]) for pool in pools if selects((pool.get("spec") or {}).get("nodeSelector"), labels)
    }
    if MASTER in fitting:
        return MASTER
    own = sorted(fitting - {WORKER})
    return own[0] if own else next(iter(fitting), None)
