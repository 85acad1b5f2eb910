"""A client of the API: it looks up the name, connects, and reads or writes, again and again."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from falsework.kube import access
from lab_under_test import LabUnderTest
from steady_client import PATIENCE, Report, SteadyClient, run_until_told, running

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_OBJECTS = 40
"""Written in turn. Writers of one object wait for each other, and that is nothing a load balancer could help."""


class Poller(SteadyClient):
    def __init__(self, kubeconfig: Path) -> None:
        super().__init__()
        self._access = access.from_kubeconfig(kubeconfig)

    def first_answer(self) -> bool:
        bodies = [{"metadata": {"name": _name(tick)}, "data": {"tick": "0"}} for tick in range(_OBJECTS)]
        return all(self._ask("POST", _CONFIG_MAPS, body) in (201, 409) for body in bodies)

    def writes(self, tick: int) -> bool:
        return tick % 2 == 0

    def ask(self, tick: int) -> int:
        path = f"{_CONFIG_MAPS}/{_name(tick)}"
        return self._ask("PATCH", path, {"data": {"tick": str(tick)}}) if self.writes(tick) else self._ask("GET", path)

    def _ask(self, method: str, path: str, body: object = None) -> int:
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
    with running(lab, report, __file__, lab.lab.site_folder / "auth" / "kubeconfig") as found:
        yield found


if __name__ == "__main__":
    sys.exit(run_until_told(Poller(Path(sys.argv[1]))))
