"""Packages from the Python package index: one file each, checked by pip against its pinned hash."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from falsework.process import run
from falsework.retry import persist

_SILENCE_LIMIT = 120.0


def download_wheels(requirements: Path, folder: Path, report: Callable[[str], None], *options: str) -> list[Path]:
    """Fetch what a requirements file pins into `folder`; `options` say for which Python, if not for this one."""
    command = (
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"),
        *("--require-hashes", *options, "--dest", str(folder), "-r", str(requirements)),
    )
    persist(
        "the Python package index",
        lambda: run(command, silence_limit=_SILENCE_LIMIT),
        report,
        fix="check the network or PIP_INDEX_URL, or use a mirror (falsework release build --mirror …)",
    )
    return sorted(folder.glob("*.whl"))
