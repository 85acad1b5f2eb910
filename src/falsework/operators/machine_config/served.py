"""Which machine had which config: masters' servers note it in a ConfigMap, the approver and the operator read it."""

from __future__ import annotations

import json
import queue
import threading
import time
from dataclasses import dataclass

from falsework.config_server.records import complain
from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object
from falsework.kube.resources import CONFIG_MAPS
from falsework.operators.machine_config import names

_AGAIN = 60.0
"""Seconds after which a machine that comes again is noted again: nobody keeps the API busy with asking us."""
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True)
class Fetch:
    time: float
    config: str


def fetches_in(config_map: Object | None) -> dict[str, Fetch]:
    """Node name → its last fetch. What cannot be read says nothing."""
    data = (config_map or {}).get("data") or {}
    return {str(name): fetch for name, text in data.items() if (fetch := _fetch(text)) is not None}


def _fetch(text: str) -> Fetch | None:
    try:
        found = json.loads(text)
        return Fetch(float(found["time"]), str(found["config"]))
    except (ValueError, TypeError, KeyError):
        return None


class ServedInCluster:
    """Notes from a thread of its own: the server answers others meanwhile. What cannot be written is tried until it
    can: a machine that is not noted gets no certificate."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last: dict[str, Fetch] = {}
        self._waiting: queue.SimpleQueue[tuple[str, Fetch]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="served", daemon=True).start()

    def note(self, machine: str, config: str) -> None:
        now, last = time.time(), self._last.get(machine)
        if last is not None and last.config == config and 0 <= now - last.time < _AGAIN:
            return
        self._last[machine] = fetch = Fetch(round(now, 3), config)
        self._waiting.put((machine, fetch))

    def _write(self) -> None:
        while True:
            machine, fetch = self._waiting.get()
            text = json.dumps({"time": fetch.time, "config": fetch.config})
            pause = _FIRST_PAUSE
            while (reason := self._patch({machine: text})) is not None:
                complain(f"that {machine} has its config could not be noted yet: {reason}")
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _patch(self, data: dict[str, str]) -> str | None:
        try:
            self._client.patch(CONFIG_MAPS, names.SERVED, {"data": data}, names.NAMESPACE)
        except FalseworkError as error:
            return error.cause or error.what
        return None
