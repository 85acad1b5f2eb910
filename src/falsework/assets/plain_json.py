"""JSON, always the same bytes for the same data. The standard library alone."""

from __future__ import annotations

import json
from typing import Any


def to_json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()
