"""For tests inside a virtual host: the release is on its disk as it is used, without the parts it was made of."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.release.inventory import Release

CACHE = Path("/var/cache/falsework")


@pytest.fixture(scope="session")
def beside_cache() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="test-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def release() -> Release:
    return Release("", {}, {}, "", os_root=CACHE / "os", image_store=CACHE / "image-store")
