"""What Falsework's code in a machine can be started as. Each is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys

ENTRY_POINTS = {
    "approve-csr": "falsework.bootstrap.approver",
    "boot-server": "falsework.helper.bootserver",
}
"""Name → module with a `main(words)` that gives back the exit code. It may import the standard library, and PyYAML."""


def main(words: list[str]) -> int:
    if not words or words[0] not in ENTRY_POINTS:
        print(f"falsework: say which: {', '.join(sorted(ENTRY_POINTS))}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(ENTRY_POINTS[words[0]]).main(words[1:])
    return code
