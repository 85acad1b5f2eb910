"""How often something is killed at a moment nobody chose: a few times in the component tests, many in the soak."""

from __future__ import annotations

import os

KILLS = "FALSEWORK_KILLS"


def kills(few: int) -> int:
    return int(os.environ.get(KILLS, few))
