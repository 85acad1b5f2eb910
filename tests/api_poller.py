"""A client of the API that never keeps a connection: 20 times a second it looks up the name, connects, and reads or
writes. It counts from the first answer on; whatever fails after that is a failed request.

Runs by itself in the lab's network (`polling`), and says at its end what it has seen.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from falsework.kube import access
from lab_under_test import LabUnderTest

PER_SECOND = 20
PATIENCE = 30.0
_AT_ONCE = 100
_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_OBJECTS = 40
"""Written in turn. Writers of one object wait for each other, and that is nothing a load balancer could help."""


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


class Poller:
    def __init__(self, kubeconfig: Path) -> None:
        self._access = access.from_kubeconfig(kubeconfig)
        self._lock = threading.Lock()
        self._report = Report()
        self._began = 0.0

    def run(self, over: threading.Event) -> Report:
        while not self._first_answer():
            if over.wait(0.1):
                return self._report
        self._began = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            tick = 0
            while not over.wait(max(0.0, self._began + tick / PER_SECOND - time.monotonic())):
                pool.submit(self._read if tick % 2 else self._write, tick)
                tick += 1
        self._report.seconds = time.monotonic() - self._began
        return self._report

    def _first_answer(self) -> bool:
        bodies = [{"metadata": {"name": _name(tick)}, "data": {"tick": "0"}} for tick in range(_OBJECTS)]
        with contextlib.suppress(OSError, http.client.HTTPException):
            return all(self._ask("POST", _CONFIG_MAPS, body) in (201, 409) for body in bodies)
        return False

    def _read(self, tick: int) -> None:
        self._counted("GET", tick, None)
        with self._lock:
            self._report.reads += 1

    def _write(self, tick: int) -> None:
        self._counted("PATCH", tick, {"data": {"tick": str(tick)}})
        with self._lock:
            self._report.writes += 1

    def _counted(self, method: str, tick: int, body: object) -> None:
        asked = time.monotonic()
        try:
            status = self._ask(method, f"{_CONFIG_MAPS}/{_name(tick)}", body)
            wrong = "" if status == 200 else f"status {status}"
        except (OSError, http.client.HTTPException) as error:
            wrong = repr(error)
        took = time.monotonic() - asked
        with self._lock:
            if wrong:
                self._report.failures.append(f"{asked - self._began:.2f} s: {method} after {took:.2f} s: {wrong}")
            if took > self._report.slowest:
                self._report.slowest, self._report.slowest_at = took, asked - self._began

    def _ask(self, method: str, path: str, body: object) -> int:
        connection = http.client.HTTPSConnection(
            self._access.host, self._access.port, timeout=PATIENCE, context=self._access.context
        )
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": kind, "Connection": "close"})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()


def _name(tick: int) -> str:
    return f"poller-{tick % _OBJECTS}"


@contextlib.contextmanager
def polling(lab: LabUnderTest, report: Path) -> Iterator[Report]:
    """While the block runs; what it gives is filled in at its end."""
    found = Report()
    words = lab.view(sys.executable, __file__, lab.lab.site_folder / "auth" / "kubeconfig")
    environment = {**lab.environment(), "PYTHONPATH": f"{Path(access.__file__).parents[2]}:{Path(__file__).parent}"}
    with report.open("wb") as output, subprocess.Popen(words, stdout=output, env=environment) as client:
        try:
            yield found
        finally:
            client.terminate()
            client.wait(PATIENCE + 10)
            for key, value in json.loads(report.read_bytes() or b"{}").items():
                setattr(found, key, value)


def main(words: list[str]) -> int:
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    print(json.dumps(asdict(Poller(Path(words[0])).run(over))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
