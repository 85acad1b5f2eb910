"""A file that a running program adds lines of JSON to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Those that are whole: the last one may be on its way."""
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
