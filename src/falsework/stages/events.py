"""One stream of what happened to a lab: the terminal, `status` and JSON readers all read this.

One JSON object a line, appended by whoever holds the lab's lock. The file is bounded: when it is full, it becomes the
older of two.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 20
MAX_TEXT = 4000

Event = dict[str, Any]
"""`time` (seconds since 1970), `kind`, and what belongs to the kind."""


class Kind(StrEnum):
    RUN = "run"
    """state: started, finished, failed, interrupted; command, process"""
    STAGE = "stage"
    """stage, state: started, skipped, finished, failed, interrupted; seconds, cpuSeconds; error"""
    CONDITION = "condition"
    """stage, name, waitsFor, holds, state, error, evidence, forSeconds"""
    SENTENCE = "sentence"
    """text"""


_SECRETS = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), "…"),
    (
        re.compile(r"""(["']?(?:auth|password|token|secret)["']?\s*[:=]\s*)["']?[^\s"',}]+["']?""", re.IGNORECASE),
        r"\1…",
    ),
    (re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"), "…"),
)


def without_secrets(text: str) -> str:
    """What a program said may quote what it was given: keys, pull secrets, join tokens."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    return value


class EventLog:
    """The writing end. Safe to use from many threads of the process that holds the lab's lock."""

    def __init__(self, path: Path, listener: Callable[[Event], None] | None = None) -> None:
        self.path = path
        self._listener = listener
        self._lock = threading.Lock()

    def add(self, kind: Kind, **fields: Any) -> None:
        event: Event = {"time": round(time.time(), 3), "kind": str(kind), **_clean(fields)}
        with self._lock:
            self._append(json.dumps(event).encode() + b"\n")
            if self._listener:
                self._listener(event)

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            size = file.tell()
            if size and not _ends_a_line(self.path):
                # A killed writer's half line: what follows must not be joined to it.
                line = b"\n" + line
            file.write(line)
        if size + len(line) > MAX_BYTES:
            self.path.replace(_older(self.path))


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _older(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


def read_events(path: Path) -> Iterator[Event]:
    """All that is kept, oldest first. A line cut off by a kill is passed over."""
    for part in (_older(path), path):
        try:
            lines = part.read_bytes().split(b"\n")
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "kind" in event:
                yield event
