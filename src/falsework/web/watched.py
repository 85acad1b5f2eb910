"""Files that may be replaced while a server runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Watched(Generic[T]):
    """A file that is read again when it has changed."""

    def __init__(self, path: Path, parse: Callable[[bytes], T], nothing: T) -> None:
        self._path, self._parse, self._nothing = path, parse, nothing
        self._seen: object = None
        self._value = nothing
        self.problem = ""
        """Why it says nothing; empty if it does."""

    def value(self) -> T:
        try:
            seen = stamp(self._path)
            if seen != self._seen:
                self._value, self.problem = self._parse(self._path.read_bytes()), ""
                self._seen = seen
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self._value, self._seen = self._nothing, None
            self.problem = f"{self._path} cannot be read: {reason}"
        return self._value


def stamp(path: Path) -> tuple[int, int, int]:
    """Another one when the file was replaced or written to."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
