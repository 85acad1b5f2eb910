"""Why the API cannot be followed, said when the reason changes, and now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from falsework.errors import FalseworkError
from falsework.kube.errors import ApiError

_REMIND = 60.0


class Trouble:
    """`tell` is what informers call for every try that failed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: dict[str, float] = {}
        self._lock = threading.Lock()

    def tell(self, error: FalseworkError) -> None:
        if isinstance(error, ApiError) and error.is_gone:
            return
        text = f"Waiting for the API: {error.what}" + (f" ({error.cause})" if error.cause else "")
        with self._lock:
            now = time.monotonic()
            if now - self._said.get(text, now - _REMIND) >= _REMIND:
                self._said = {known: at for known, at in self._said.items() if now - at < _REMIND} | {text: now}
                self._say(text)
