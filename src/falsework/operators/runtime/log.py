"""One line for one thing that happened: a JSON object, so that programs can read it too, and grep finds the words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Say = Callable[[str], None]


class Log:
    """Keys: time, level, operator, perhaps controller, msg, and whatever the caller adds. Never a secret."""

    def __init__(self, operator: str, controller: str = "", write: Callable[[str], object] | None = None) -> None:
        self._operator = operator
        self._controller = controller
        self._write = write or sys.stderr.write

    def of(self, controller: str) -> Log:
        """The same log, for one controller."""
        return Log(self._operator, controller, self._write)

    def info(self, msg: str, **more: Any) -> None:
        self._line("info", msg, more)

    def warning(self, msg: str, **more: Any) -> None:
        self._line("warning", msg, more)

    def error(self, msg: str, **more: Any) -> None:
        self._line("error", msg, more)

    def _line(self, level: str, msg: str, more: dict[str, Any]) -> None:
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        line = {"time": f"{moment}Z", "level": level, "operator": self._operator}
        if self._controller:
            line["controller"] = self._controller
        # One write for one line: those of two threads are not mixed.
        self._write(json.dumps({**line, "msg": msg, **more}, default=str, ensure_ascii=False) + "\n")


class Changes:
    """Says a thing when it differs from what was said last under the same name: loops come round often."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._said: dict[str, str] = {}

    def say(self, name: str, text: str) -> None:
        if self._said.get(name) != text:
            self._said[name] = text
            if text:
                self._say(text)
