"""Looks at an operator's certificates now and then. Not at first: a cluster that is being made has other work for its
processors, and its certificates are fresh."""

from __future__ import annotations

import time

from falsework.operators.certificates.table import Table
from falsework.operators.runtime.controller import Controller, Wake
from falsework.operators.runtime.program import Program

FIRST_LOOK = 90.0
"""Seconds after the start."""
_LONGEST, _SHORTEST = 3600.0, 30.0


def certificate_controller(program: Program, table: Table, *wakes: Wake) -> Controller:
    first_look = time.monotonic() + FIRST_LOOK

    def sync(_: str) -> float:
        if (left := first_look - time.monotonic()) > 0:
            return left
        # Late: it brings a large library.
        from falsework.operators.certificates.rotation import Rotation

        wait = Rotation(program.client, program.events, table).look()
        return min(max(wait, _SHORTEST), _LONGEST)

    return Controller("CertificateRotationController", sync, wakes, resync=_LONGEST)
