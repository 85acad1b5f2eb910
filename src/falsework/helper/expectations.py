"""Which machines are expected to boot now: a small file the boot server reads and the stages write.

`{"master-0": true, "master-1": {"since": 1700000000, "until": 1700000600}}`: machine → always, or a stretch of time
in seconds since 1970, of which either end may be missing. Who is not in it is not expected. Runs on the host and in
the helper: the standard library alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PATH = "/var/lib/falsework/expected.json"


@dataclass(frozen=True)
class Stretch:
    since: float = -math.inf
    until: float = math.inf

    def includes(self, moment: float) -> bool:
        return self.since <= moment < self.until


ALWAYS = Stretch()
Expected = Mapping[str, Stretch]


def parse(content: bytes) -> Expected:
    """ValueError says what is wrong with it."""
    data = json.loads(content)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return {name: _stretch(name, value) for name, value in data.items()}


def written(expected: Expected) -> bytes:
    data = {name: _as_json(stretch) for name, stretch in sorted(expected.items())}
    return json.dumps(data, indent=1).encode() + b"\n"


def is_expected(expected: Expected, machine: str, moment: float) -> bool:
    return machine in expected and expected[machine].includes(moment)


def expecting(expected: Expected, machines: Iterable[str], stretch: Stretch = ALWAYS) -> Expected:
    """These too, from now on with this stretch."""
    return {**expected, **dict.fromkeys(machines, stretch)}


def no_longer(expected: Expected, machines: Iterable[str]) -> Expected:
    gone = set(machines)
    return {name: stretch for name, stretch in expected.items() if name not in gone}


def _stretch(name: str, value: object) -> Stretch:
    if value is True:
        return ALWAYS
    if not isinstance(value, dict) or not value.keys() <= {"since", "until"}:
        raise ValueError(f"what it says of {name} is neither true nor a stretch of time")
    ends = {key: end for key, end in value.items() if end is not None}
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends.values()):
        raise ValueError(f"what it says of {name} is not a time")
    return Stretch(**ends)


def _as_json(stretch: Stretch) -> object:
    ends = {"since": stretch.since, "until": stretch.until}
    return {key: end for key, end in ends.items() if math.isfinite(end)} or True
