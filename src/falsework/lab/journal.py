"""The list of what was made for a lab. A line is on the disk before the thing it names is made.

So whatever is there is in the list, though not all of the list need be there: a kill may come in between. Removing
looks first, and may be done again.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError


@dataclass(frozen=True)
class Thing:
    """Something outside a file's content that stays when we end: a namespace, a cgroup, a changed setting."""

    kind: str
    name: str
    detail: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What the one who removes it must know; as it was when the thing was first made."""


_turn = threading.Lock()
"""Other processes are kept away by the lab's lock; machines are made by several threads."""


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path

    def creating(self, kind: str, name: str, **detail: str) -> None:
        """Note what is about to be made. What stands there already is left as it was noted first."""
        thing = Thing(kind, name, detail)
        with _turn:
            if thing not in self.standing():
                self._append({"creating": {"kind": kind, "name": name, "detail": detail}})

    def removed(self, thing: Thing) -> None:
        with _turn:
            self._append({"removed": {"kind": thing.kind, "name": thing.name}})

    def standing(self) -> list[Thing]:
        """What was made, or was about to be, and has not been removed; in the order of making."""
        things: dict[Thing, Thing] = {}
        for entry in self._entries():
            if made := entry.get("creating"):
                thing = Thing(**made)
                things.setdefault(thing, thing)
            elif gone := entry.get("removed"):
                things.pop(Thing(**gone), None)
        return list(things)

    def _entries(self) -> list[dict[str, Any]]:
        try:
            lines = self.path.read_text().split("\n")
        except FileNotFoundError:
            return []
        # The last line may be cut off by a kill in the middle of a write: what it names was not made yet.
        whole = [line for line in lines[:-1] if line.strip()]
        try:
            return [json.loads(line) for line in whole]
        except ValueError:
            raise FalseworkError(
                f"{self.path} is damaged",
                cause="a line of it is not JSON; Falsework writes nothing else there",
                fix="mend or remove the line, then run the same command again",
            ) from None

    def _append(self, entry: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.path.open("a+b") as file:
            # What a kill cut off in the middle of a line was never made; its rest must not spoil this line.
            file.truncate(self.path.read_bytes().rfind(b"\n") + 1)
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
