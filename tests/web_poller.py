"""A visitor of a web address in the lab, who comes again and again."""

from __future__ import annotations

import contextlib
import http.client
import sys
from collections.abc import Iterator
from pathlib import Path

from lab_under_test import LabUnderTest
from steady_client import PATIENCE, Report, SteadyClient, run_until_told, running


class Visitor(SteadyClient):
    def __init__(self, host: str) -> None:
        super().__init__()
        self._host = host

    def first_answer(self) -> bool:
        return self.ask(0) == 200

    def writes(self, tick: int) -> bool:
        return False

    def ask(self, tick: int) -> int:
        connection = http.client.HTTPConnection(self._host, timeout=PATIENCE)
        try:
            connection.request("GET", "/", headers={"Connection": "close"})
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()


@contextlib.contextmanager
def visiting(lab: LabUnderTest, host: str, report: Path) -> Iterator[Report]:
    """While the block runs; what it gives is filled in at its end."""
    with running(lab, report, __file__, host) as found:
        yield found


if __name__ == "__main__":
    sys.exit(run_until_told(Visitor(sys.argv[1])))
