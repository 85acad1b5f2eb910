"""Service records: what a unit did and how it ended, for programs. /var/log/openshift/<unit>.json, as OpenShift has it.

The file is one JSON array. It goes on over restarts, so it also tells how often the unit was started. An entry is

    {timestamp, phase, stage?, result?, errorLine?, errorMessage?}

with the phases `service start`, `service end`, `stage start`, `stage end` and the results `success`, `failure`.
"""

from __future__ import annotations

import contextlib
import json
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from falsework.files import write_file

FOLDER = Path("/var/log/openshift")
SUCCESS = "success"
FAILURE = "failure"

_Entry = dict[str, Any]


def _now() -> datetime:
    return datetime.now(UTC)


class Records:
    """The records of one unit. Several threads may write them."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = _now) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._entries = _read(path)

    def service_start(self) -> None:
        self._add("service start")

    def service_end(self, result: str = SUCCESS, error: BaseException | None = None) -> None:
        self._add("service end", result=result, **_told(error))

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Start and end of a stage; whatever the block raises is noted as its failure, and goes on."""
        self._add("stage start", stage=name)
        try:
            yield
        except Exception as error:
            self._add("stage end", stage=name, result=FAILURE, **_told(error))
            raise
        self._add("stage end", stage=name, result=SUCCESS)

    def _add(self, phase: str, **details: str) -> None:
        moment = self._clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._lock:
            self._entries.append({"timestamp": moment, "phase": phase, **details})
            write_file(self._path, json.dumps(self._entries, indent=1).encode() + b"\n")


def of_unit(unit: str) -> Records:
    return Records(FOLDER / f"{unit}.json")


def _read(path: Path) -> list[_Entry]:
    """What earlier runs wrote. A file that is no list of entries is set aside: nothing may stop the unit for it."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    except ValueError:
        found = None
    if isinstance(found, list) and all(isinstance(entry, dict) for entry in found):
        return found
    path.replace(path.with_name(f"{path.name}.unreadable"))
    return []


def _told(error: BaseException | None) -> dict[str, str]:
    if error is None:
        return {}
    frames = traceback.extract_tb(error.__traceback__)
    line = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return {"errorLine": line, "errorMessage": str(error) or type(error).__name__}
