"""How our units on the bootstrap machine run: what they say goes to the journal, how they end to their records."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from falsework.bootstrap.records import FAILURE, Records, of_unit
from falsework.errors import FalseworkError


def say(line: str) -> None:
    print(line, flush=True)


def run_service(unit: str, run: Callable[[Records], None]) -> int:
    """The exit code. After a failure systemd starts the unit again."""
    records = of_unit(unit)
    records.service_start()
    try:
        run(records)
    except FalseworkError as error:
        say(str(error))
        records.service_end(FAILURE, error)
        return 1
    except Exception as error:  # noqa: BLE001 - a fault of ours: told in full, and tried again
        say(traceback.format_exc())
        records.service_end(FAILURE, error)
        return 70
    records.service_end()
    return 0
