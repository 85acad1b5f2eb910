"""Which version of Ignition's spec a client wants, from its Accept header.

Ignition names the newest spec it knows: `application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1`.
"""

from __future__ import annotations

import re
from enum import Enum

_IGNITION = "application/vnd.coreos.ignition+json"
_VERSION = re.compile(r'"?([0-9]{1,9})\.([0-9]{1,9})(?:\.[0-9]{1,9})?"?')
_WEIGHT = re.compile(r"[01](?:\.[0-9]{0,3})?")
NATIVE = (3, 2)
"""The spec our configs are written in. Newer Ignitions read it as it is."""


class Unserved(Enum):
    UNSUPPORTED = "no spec that it reads is served"
    """Nothing that we could make would be read."""
    NOT_EXPRESSIBLE = "configs of spec 3 are not converted to spec 2"
    """What OpenShift would convert, and fail if it cannot; ours never can."""


def wanted_spec(header: str) -> tuple[int, int] | Unserved:
    """The spec to answer in. Whoever names none, such as curl, gets it as it is."""
    versions = _versions(header)
    if not versions:
        return NATIVE
    results = [_served(version) for version in versions]
    # What it likes best of what there is.
    for result in results:
        if not isinstance(result, Unserved):
            return result
    return Unserved.NOT_EXPRESSIBLE if Unserved.NOT_EXPRESSIBLE in results else Unserved.UNSUPPORTED


def _served(version: tuple[int, int]) -> tuple[int, int] | Unserved:
    if version[0] == 3:
        return min(version, NATIVE)
    return Unserved.NOT_EXPRESSIBLE if (2, 2) <= version < (3, 0) else Unserved.UNSUPPORTED


def _versions(header: str) -> list[tuple[int, int]]:
    """The versions of Ignition's spec it names, best liked first."""
    found: list[tuple[float, tuple[int, int]]] = []
    for entry in header.split(","):
        kind, *parameters = (word.strip() for word in entry.split(";"))
        named = {name.strip().lower(): value.strip() for name, _, value in (one.partition("=") for one in parameters)}
        version = _VERSION.fullmatch(named.get("version", ""))
        weight = float(named["q"]) if _WEIGHT.fullmatch(named.get("q", "")) else 1.0
        if kind.lower() == _IGNITION and version and weight > 0:
            found.append((weight, (int(version[1]), int(version[2]))))
    return [version for _, version in sorted(found, key=lambda one: -one[0])]
