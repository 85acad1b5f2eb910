"""A client that never keeps a connection and asks 20 times a second. It counts from the first answer on; whatever fails
after that is a failed request. Runs by itself in the lab's network, and says at its end what it has seen."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import falsework
from lab_under_test import LabUnderTest

PER_SECOND = 20
PATIENCE = 30.0
_AT_ONCE = 100


@dataclass
class Report:
    reads: int = 0
    writes: int = 0
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    slowest_at: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.reads} reads and {self.writes} writes in {self.seconds:.0f} s, {len(self.failures)} failed, "
            f"the slowest took {self.slowest * 1000:.0f} ms, {self.slowest_at:.0f} s after the first"
        )


class SteadyClient(ABC):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._report = Report()
        self._began = 0.0

    @abstractmethod
    def first_answer(self) -> bool:
        """Whether there is somebody to ask; OSError and HTTPException: not yet."""

    @abstractmethod
    def writes(self, tick: int) -> bool: ...

    @abstractmethod
    def ask(self, tick: int) -> int:
        """The status of the answer."""

    def run(self, over: threading.Event) -> Report:
        while not self._is_answered():
            if over.wait(0.1):
                return self._report
        self._began = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            tick = 0
            while not over.wait(max(0.0, self._began + tick / PER_SECOND - time.monotonic())):
                pool.submit(self._counted, tick)
                tick += 1
        self._report.seconds = time.monotonic() - self._began
        return self._report

    def _is_answered(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.first_answer()
        return False

    def _counted(self, tick: int) -> None:
        asked = time.monotonic()
        try:
            status = self.ask(tick)
            wrong = "" if status == 200 else f"status {status}"
        except (OSError, http.client.HTTPException) as error:
            wrong = repr(error)
        took = time.monotonic() - asked
        with self._lock:
            if self.writes(tick):
                self._report.writes += 1
            else:
                self._report.reads += 1
            if wrong:
                self._report.failures.append(f"{asked - self._began:.2f} s: after {took:.2f} s: {wrong}")
            if took > self._report.slowest:
                self._report.slowest, self._report.slowest_at = took, asked - self._began


@contextlib.contextmanager
def running(lab: LabUnderTest, report: Path, *words: str | Path) -> Iterator[Report]:
    """While the block runs, a program (a file and its arguments); what it gives is filled in at its end."""
    found = Report()
    command = lab.view(sys.executable, *words)
    environment = {**lab.environment(), "PYTHONPATH": f"{Path(falsework.__file__).parents[1]}:{Path(__file__).parent}"}
    with report.open("wb") as output, subprocess.Popen(command, stdout=output, env=environment) as client:
        try:
            yield found
        finally:
            client.terminate()
            client.wait(PATIENCE + 10)
            for key, value in json.loads(report.read_bytes() or b"{}").items():
                setattr(found, key, value)


def run_until_told(client: SteadyClient) -> int:
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    print(json.dumps(asdict(client.run(over))))
    return 0
