"""What Ignition itself says about the configs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest

from falsework.assets.catalogue import create
from falsework.site.load import default_site
from falsework.site.model import Provider

SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEhk someone@example"


@pytest.fixture(scope="session")
def ignition_validate() -> Path:
    """The real program, of the version that the machines run."""
    candidates = [os.environ.get("FALSEWORK_IGNITION_VALIDATE"), "/tmp/x/out/ignition/validate"]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    pytest.skip("ignition-validate is not at hand; FALSEWORK_IGNITION_VALIDATE says where it is")


@pytest.mark.parametrize("provider", [Provider.NSPAWN, Provider.LIBVIRT])
def test_every_config_is_valid(tmp_path: Path, ignition_validate: Path, provider: Provider) -> None:
    site = default_site()
    machines = tuple(dataclasses.replace(machine, provider=provider) for machine in site.machines)
    site = dataclasses.replace(
        site, machines=machines, ssh_keys=(SSH_KEY,), pull_secret='{"auths":{"registry.example":{"auth":"eA=="}}}'
    )
    create(site, tmp_path, complete=True)
    configs = sorted(tmp_path.rglob("*.ign"))
    assert len(configs) == 3 + 2 + 5 + 5
    for path in configs:
        result = subprocess.run([ignition_validate, path], capture_output=True, text=True, check=False)
        assert (result.returncode, result.stdout + result.stderr) == (0, ""), path


def test_it_does_refuse_a_bad_config(tmp_path: Path, ignition_validate: Path) -> None:
    (tmp_path / "bad.ign").write_text('{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"relative"}]}}')
    result = subprocess.run([ignition_validate, tmp_path / "bad.ign"], capture_output=True, check=False)
    assert result.returncode != 0
