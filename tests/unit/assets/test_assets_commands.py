"""falsework create, plan and certs, as typed."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
from asset_samples import PULL_SECRET, SSH_KEY, finished, snapshot

from falsework.cli import main

INSTALL_CONFIG = f"""apiVersion: v1
baseDomain: falsework.test
metadata:
  name: lab
compute:
- name: worker
  replicas: 0
networking:
  machineNetwork:
  - cidr: 192.168.126.0/24
platform:
  none: {{}}
pullSecret: '{PULL_SECRET}'
sshKey: '{SSH_KEY}'
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "install-config.yaml").write_text(INSTALL_CONFIG)
    return tmp_path


def secrets_in(folder: Path) -> list[str]:
    keys = [path.read_text() for path in folder.rglob("*.key")]
    lines = [line for key in keys for line in key.splitlines()[1:-1]]
    encoded = [base64.b64encode(key.encode()).decode()[40:120] for key in keys]
    return [*lines, *encoded, (folder / "auth/kubeadmin-password").read_text(), "dXNlcjpwYXNz"]


def test_create_in_two_steps_and_no_secret_is_ever_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "manifests", "--dir", str(folder)]) == 0
    assert main(["create", "ignition-configs", "--dir", str(folder), "--complete"]) == 0
    assert main(["create", "all", "--dir", str(folder)]) == 0
    assert main(["plan", "--dir", str(folder)]) == 0
    assert main(["plan", "--dir", str(folder), "--json"]) == 0
    assert main(["certs", "--dir", str(folder)]) == 0
    assert main(["certs", "--dir", str(folder), "--json"]) == 0
    printed = "".join(capsys.readouterr())
    assert printed.count("makes the masters schedulable") == 1
    assert f"{folder} is up to date" in printed
    assert "bootstrap.ign" in printed
    assert len(secrets_in(folder)) > 50
    assert not [secret for secret in secrets_in(folder) if secret in printed]
    assert (folder / "install-config.yaml").read_text() == INSTALL_CONFIG


def test_plan_touches_nothing_and_knows_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--dir", str(tmp_path / "new"), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "new").exists()
    assert [machine["role"] for machine in plan["machines"]] == [
        "helper",
        "bootstrap",
        *["master"] * 3,
        *["worker"] * 2,
    ]
    records = {(record["name"], record["type"], record["value"]) for record in plan["dns"]}
    domain = "lab.falsework.test"
    assert (f"api-int.{domain}", "A", "192.168.126.2") in records
    assert (f"*.apps.{domain}", "A", "192.168.126.2") in records
    assert ("101.126.168.192.in-addr.arpa", "PTR", f"master-0.{domain}.") in records
    assert (f"_etcd-server-ssl._tcp.{domain}", "SRV", f"0 10 2380 etcd-2.{domain}.") in records
    assert "bootstrap.ign" in plan["assets"]["write"]
    assert all(not entry["made"] for entry in plan["certificates"])
    worker = plan["machines"][-1]
    assert worker["certificates"] == ["join/worker-1"]


def test_certs_shows_the_calendar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished(tmp_path)
    before = snapshot(tmp_path)
    assert main(["certs", "--dir", str(tmp_path), "--json"]) == 0
    calendar = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert snapshot(tmp_path) == before
    assert calendar["kubelet-signer"]["notBefore"] == "2030-01-01T11:55:00+00:00"
    assert calendar["kubelet-signer"]["notAfter"] == "2030-01-02T12:00:00+00:00"
    assert calendar["machine-config-server"]["signer"] == "root-ca"
    shutil.copy(tmp_path / "tls/etcd-client.crt", tmp_path / "tls/apiserver-proxy.crt")
    (tmp_path / "tls/aggregator-client.crt").write_text("no certificate")
    (tmp_path / "tls/etcd-metric-client.crt").unlink()
    assert main(["certs", "--dir", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "not made" in printed
    assert "problem: cannot be read" in printed
    assert "which is not the aggregator-ca at hand" in printed


def test_a_bad_site_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "install-config.yaml").write_text("apiVersion: v1\nbaseDomane: x\n")
    for command in (["create", "all"], ["plan"], ["certs"]):
        assert main([*command, "--dir", str(tmp_path)]) == 2
    assert "install-config.yaml:2:1" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["install-config.yaml"]


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tls").write_text("in the way")
    assert main(["create", "all", "--dir", str(tmp_path)]) == 1
    assert "no file is half written" in capsys.readouterr().err
