"""Processes that get in each other's way: killed at moments nobody chose, and two at once."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from falsework.assets.catalogue import certificates_in, create
from falsework.assets.graph import Report
from falsework.assets.pki import load_certificates, load_key
from falsework.site.load import default_site

PROGRAM = """
import sys
from pathlib import Path
from falsework.assets.catalogue import create
from falsework.site.load import default_site
site = default_site()
print("ready", flush=True)
create(site, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("delay", [0.02, 0.06, 0.1, 0.15, 0.2])
def test_killed_while_creating(tmp_path: Path, delay: float) -> None:
    folder = tmp_path / "assets"
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", PROGRAM, folder], stdout=subprocess.PIPE)
        assert child.stdout is not None
        with child.stdout as output:
            assert output.readline() == b"ready\n"
            time.sleep(delay)
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGKILL)
            child.wait()
        for path in folder.rglob("[!.]*"):
            if path.suffix == ".crt":
                load_certificates(path.read_bytes())
            elif path.suffix == ".key":
                load_key(path.read_bytes())
            elif path.suffix in (".ign", ".json"):
                json.loads(path.read_bytes())

    report = create(default_site(), folder)
    assert report.warnings == report.edited == ()
    assert all(entry.problem is None for entry in certificates_in(default_site(), folder))
    hidden = [path for path in folder.rglob(".*") if path.name != ".falsework-state.json"]
    assert hidden == []
    assert create(default_site(), folder) == Report()


def test_two_at_once_end_with_one_set_of_assets(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "assets")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    for child in children:
        child.communicate()
        assert child.returncode == 0
    assert create(default_site(), tmp_path / "assets") == Report()
    assert all(entry.problem is None for entry in certificates_in(default_site(), tmp_path / "assets"))
