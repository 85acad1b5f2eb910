"""A copy of the release's files in a folder or behind a URL, for sites that cannot or will not build.

A mirror is not trusted: it is asked for content by digest, and what comes back is checked by that digest.
"""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from falsework.errors import FalseworkError
from falsework.files import CHUNK
from falsework.process import CommandError, Finished
from falsework.release.cache import Cache, DigestMismatchError
from falsework.retry import persist

BLOBS = "blobs/sha256"
_TIMEOUT = 60.0


class Mirror(Protocol):
    place: str

    def fetch(self, path: str, target: Path) -> bool:
        """Write the mirror's file to `target`; False if it does not have it."""


class FolderMirror:
    def __init__(self, folder: Path) -> None:
        if not (folder / BLOBS).is_dir():
            raise FalseworkError(
                f"{folder} is not a mirror",
                cause=f"it has no folder {BLOBS}",
                fix=f"make one with `falsework release export {folder}` on a host that has the release",
            )
        self.place = str(folder)

    def fetch(self, path: str, target: Path) -> bool:
        try:
            shutil.copyfile(Path(self.place, path), target)
        except FileNotFoundError:
            return False
        return True


class HttpMirror:
    def __init__(self, url: str, report: Callable[[str], None]) -> None:
        self.place = url.rstrip("/")
        self._report = report

    def fetch(self, path: str, target: Path) -> bool:
        return persist(
            f"the mirror {self.place}",
            lambda: self._fetch_once(f"{self.place}/{path}", target),
            self._report,
            fix="check the address and that the mirror's server runs; then run this again",
        )

    @staticmethod
    def _fetch_once(url: str, target: Path) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, target.open("wb") as file:  # noqa: S310
                shutil.copyfileobj(answer, file, CHUNK)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return False
            raise CommandError(f"GET {url} answered {error.code}", Finished(("GET", url), 1, str(error))) from None
        except OSError as error:
            raise CommandError(f"GET {url} got no answer", Finished(("GET", url), 1, f"timed out: {error}")) from None
        return True


def open_mirror(place: str, report: Callable[[str], None]) -> Mirror:
    if place.startswith(("http://", "https://")):
        return HttpMirror(place, report)
    return FolderMirror(Path(place))


def fetch_into(cache: Cache, mirror: Mirror, digest: str, name: str) -> Path | None:
    """Bring a blob from the mirror into the cache; None if it has none or a wrong one."""
    with cache.work(name) as folder:
        draft = folder / "blob"
        if not mirror.fetch(f"{BLOBS}/{digest}", draft):
            return None
        try:
            cache.add(draft, expected=digest)
        except DigestMismatchError as error:
            cache.report(f"{name}: the mirror's copy was refused: {error.what}")
            return None
    return cache.path_of(digest)
