"""One line for one thing that happened."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime

Say = Callable[[str], None]


def say(text: str) -> None:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    print(f"{moment}Z {text}", file=sys.stderr, flush=True)


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
