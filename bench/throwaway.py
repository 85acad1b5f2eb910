"""A lab for one measurement, removed at its end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from falsework.lab.folder import Lab
from falsework.release.cache import default_root


def falsework(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "falsework", *words], check=True)


@contextlib.contextmanager
def throwaway_lab() -> Iterator[Lab]:
    """Apart from the person's own labs, on the cache's file system, so that machines can share files with it."""
    os.environ.setdefault("FALSEWORK_STATE", str(default_root().parent / "falsework-bench"))
    with tempfile.TemporaryDirectory(prefix="falsework-bench-") as folder:
        lab = Lab.of(Path(folder) / "site")
        try:
            yield lab
        finally:
            falsework("destroy", "--yes", "--dir", str(lab.site_folder))
