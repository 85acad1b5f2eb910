"""The administrator's kubeconfig, for programs of the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from falsework.assets.kubeconfig import kubeconfig
from falsework.cli import main

DOMAIN = "lab.falsework.test"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    content = kubeconfig("lab", f"https://api.{DOMAIN}:6443", b"ca", "admin", b"certificate", b"key")
    path = tmp_path / "site" / "auth" / "kubeconfig"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path / "site"


def test_it_is_printed_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubeconfig", "--dir", str(folder)]) == 0
    assert capsys.readouterr().out == (folder / "auth" / "kubeconfig").read_text()
    assert main(["kubeconfig", "--path", "--dir", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}/auth/kubeconfig\n"


def test_through_a_port_of_the_host(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubeconfig", "--dir", str(folder), "--forwarded", "7000"]) == 0
    printed = capsys.readouterr()
    cluster = yaml.safe_load(printed.out)["clusters"][0]["cluster"]
    assert (cluster["server"], cluster["tls-server-name"]) == ("https://127.0.0.1:7000", f"api.{DOMAIN}")
    assert "falsework forward --port 7000" in printed.err


def test_beside_what_is_there(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / ".kube" / "config"
    target.parent.mkdir()
    target.write_bytes(kubeconfig("other", "https://other:6443", b"ca", "me", b"c", b"k"))
    for _ in range(2):
        assert main(["kubeconfig", "--dir", str(folder), "--merge"]) == 0
    config = yaml.safe_load(target.read_text())
    assert [entry["name"] for entry in config["clusters"]] == ["other", DOMAIN]
    assert [entry["name"] for entry in config["users"]] == ["me", DOMAIN]
    assert config["current-context"] == DOMAIN
    assert target.stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr().out == ""


def test_the_first_file_of_the_variable_is_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a{os.pathsep}{tmp_path}/b")
    assert main(["kubeconfig", "--dir", str(folder), "--merge"]) == 0
    assert (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()


def test_without_assets_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubeconfig", "--dir", str(tmp_path)]) == 1
    assert "run `falsework up`" in capsys.readouterr().err
