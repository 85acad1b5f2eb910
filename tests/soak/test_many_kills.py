"""The component tests in which something is killed at moments nobody chose, with many more such moments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kills import KILLS

COMPONENT = Path(__file__).parents[1] / "component"
USERS = sorted(path for path in COMPONENT.rglob("test_*.py") if "from kills import" in path.read_text())


@pytest.mark.parametrize("file", USERS, ids=lambda path: path.stem)
def test_killed_at_many_moments(file: Path) -> None:
    words = [sys.executable, "-m", "pytest", str(file), "-k", "kill"]
    subprocess.run(words, env={**os.environ, KILLS: "10"}, check=True)
