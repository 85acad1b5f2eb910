"""A site, a clock and a folder of finished assets for the tests of assets."""

from __future__ import annotations

import atexit
import dataclasses
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from falsework.assets.catalogue import Step, create
from falsework.assets.graph import Report
from falsework.site.load import default_site
from falsework.site.model import Site

START = datetime(2030, 1, 1, 12, tzinfo=UTC)
PULL_SECRET = '{"auths":{"registry.example":{"auth":"dXNlcjpwYXNz"}}}'
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEhk someone@example"


@cache
def sample_site() -> Site:
    return dataclasses.replace(default_site(), ssh_keys=(SSH_KEY,), pull_secret=PULL_SECRET)


def at(moment: datetime) -> Callable[[], datetime]:
    return lambda: moment


def later(**span: float) -> Callable[[], datetime]:
    return at(START + timedelta(**span))


@cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="falsework-test-assets-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    create(sample_site(), folder, Step.ALL, complete=True, clock=at(START))
    return folder


def finished(target: Path) -> Path:
    """A copy of a finished asset folder: making one takes longer."""
    return Path(shutil.copytree(_made(), target, dirs_exist_ok=True))


def snapshot(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Path → what is in it, when it was last written, which inode: a rewrite with the same bytes shows too."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            path.stat().st_ino,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def changed_between(before: dict[str, tuple[str, int, int]], after: dict[str, tuple[str, int, int]]) -> set[str]:
    state = {".falsework-state.json"}
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} - state


def refresh(folder: Path, site: Site | None = None, clock: Callable[[], datetime] | None = None) -> Report:
    return create(site or sample_site(), folder, Step.ALL, clock=clock or at(START))
