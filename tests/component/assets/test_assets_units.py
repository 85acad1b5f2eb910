"""What systemd says about the units in the configs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from falsework.assets.catalogue import create
from falsework.site.load import default_site

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


@pytest.mark.parametrize("config", ["bootstrap.ign", "complete/master-0.ign"])
def test_units_are_understood(tmp_path: Path, config: str) -> None:
    """The programs they start are on the machines, not here; everything else is to be as systemd wants it."""
    create(default_site(), tmp_path / "assets", complete=True)
    units = json.loads((tmp_path / "assets" / config).read_bytes())["systemd"]["units"]
    files = []
    for unit in units:
        if "contents" in unit:
            files.append(tmp_path / unit["name"])
            files[-1].write_text(unit["contents"])
    assert len(files) >= 4
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    assert [line for line in result.stderr.splitlines() if "is not executable" not in line] == []
