"""What Ignition itself says about the configs."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from falsework.assets.catalogue import create
from falsework.release.inventory import Release
from falsework.site.load import default_site
from falsework.site.model import Provider

SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEhk someone@example"


@pytest.fixture(scope="session")
def ignition_validate(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real program, of the release that the machines run."""
    return release.install("ignition-validate", tmp_path_factory.mktemp("ignition"))


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
