"""What the Machine Config Server writes down: every answer, and which machines have had their config."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from falsework.files import write_file

FOLDER = "/var/lib/falsework/mcs"
_SERVED = "served.json"
SERVED_PATH = f"{FOLDER}/{_SERVED}"
"""On the bootstrap machine."""
LEDGER = "ledger.jsonl"
OLDER_LEDGER = "ledger.jsonl.1"
BOOT_ID = "/proc/sys/kernel/random/boot_id"

_LEDGER_BYTES = 1 << 20
_AGAIN = 60.0
"""Seconds after which a machine that comes again is noted again: nobody keeps the server busy with writing."""


class Ledger:
    """A line of JSON for each answer: on stdout, for the pod's log, and, given a folder, in a file that outlives the
    pod. When that is full it becomes the older one, and takes the place of the one before."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def write(self, line: Mapping[str, object]) -> None:
        text = json.dumps(line) + "\n"
        sys.stdout.write(text)
        sys.stdout.flush()
        if self._folder is not None:
            self._append(self._folder / LEDGER, self._folder / OLDER_LEDGER, text)

    @staticmethod
    def _append(path: Path, older: Path, text: str) -> None:
        try:
            with path.open("ab") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(text.encode())
                size = file.tell()
            if size > _LEDGER_BYTES:
                path.replace(older)
        except OSError as error:
            complain(f"{path} cannot be written: {error.strerror}")


class Served:
    """`{"master-0.lab.falsework.test": {"time": 1700000000.0, "boot": "…", "config": "rendered-master-…"}}`: when each
    machine last had its config whole, which one, and in which boot of this machine. Whoever approves certificates and
    gives Nodes their roles reads it."""

    def __init__(self, folder: Path, boot: str) -> None:
        self._path, self._boot = folder / _SERVED, boot
        self._known = _read(self._path)

    def note(self, machine: str, config: str) -> None:
        now = time.time()
        known = self._known.get(machine, {})
        same = (known.get("boot"), known.get("config")) == (self._boot, config)
        if same and 0 <= now - float(str(known.get("time", 0))) < _AGAIN:
            return
        self._known[machine] = {"time": round(now, 3), "boot": self._boot, "config": config}
        try:
            write_file(self._path, json.dumps(self._known, indent=1, sort_keys=True).encode() + b"\n")
        except OSError as error:
            del self._known[machine]
            complain(f"{self._path} cannot be written, {machine} will get no certificate: {error.strerror}")


def configs_in(path: Path) -> dict[str, str]:
    """Machine → the config it had last. A file that is missing or broken says nothing."""
    return {machine: str(entry["config"]) for machine, entry in _read(path).items() if entry.get("config")}


def boot_id(path: Path) -> str:
    """As the kernel writes it, with dashes. ValueError if the file has none."""
    return str(uuid.UUID(path.read_text().strip()))


def complain(text: str) -> None:
    print(f"machine-config-server: {text}", file=sys.stderr, flush=True)


def _read(path: Path) -> dict[str, dict[str, object]]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    entries = data.items() if isinstance(data, dict) else ()
    return {str(name): entry for name, entry in entries if isinstance(entry, dict)}
