"""Packages are installed in a view of the host in which there is nothing to start a daemon with."""

from __future__ import annotations

from pathlib import Path

import pytest

from falsework.host import packages
from falsework.process import run


def test_systemd_is_hidden_from_the_command_and_from_nobody_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    systemd = tmp_path / "systemd" / "system"
    systemd.mkdir(parents=True)
    monkeypatch.setattr(packages, "SYSTEMD", systemd)
    seen = run(packages.without_daemons(["find", str(systemd.parent)])).output.split()
    assert seen == [str(systemd.parent)]
    assert systemd.is_dir()
