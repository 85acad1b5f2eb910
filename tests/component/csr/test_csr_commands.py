"""`falsework csr` against a real API: what is listed, and what is approved. Machines' files are in a folder here."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from approver_process import ApproverProcess, allow_requests
from csr_maker import CLIENT_USAGES, request_pem, submit
from real_api import RealApi

from falsework.checks.requests import Requests
from falsework.cli import csr as command
from falsework.csr import decide, decisions
from falsework.csr.knowledge import BOOT_ID
from falsework.csr.request import CLIENT_SIGNER
from falsework.errors import FalseworkError
from falsework.kube.client import APPLY
from falsework.kube.resources import CONFIG_MAPS, CSRS, NAMESPACES
from falsework.manifests.objects import config_map, named
from falsework.operators.machine_config import names


@pytest.fixture
def site(real_api: RealApi, tmp_path: Path) -> Iterator[ApproverProcess]:
    """The approver itself does not run."""
    process = ApproverProcess(real_api, tmp_path / "approver")
    allow_requests(process.admin)
    # What is listed is all there is.
    process.remove_nodes_and_requests()
    yield process
    process.remove_nodes_and_requests()


@pytest.fixture
def files() -> dict[str, bytes]:
    """Of the bootstrap machine."""
    return {str(BOOT_ID): b"now\n"}


@pytest.fixture
def requests(site: ApproverProcess, files: dict[str, bytes]) -> Requests:
    def read_file(path: str) -> bytes:
        if not files:
            raise FalseworkError("bootstrap is off")
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    return Requests(site.admin, site.api.site, read_file)


def ask(site: ApproverProcess, machine: str = "master-0", **others: object) -> str:
    pem = request_pem(f"system:node:{site.node(machine)}", **others)  # type: ignore[arg-type]
    return submit(site.joining(machine), pem, CLIENT_SIGNER, CLIENT_USAGES)


def serve(files: dict[str, bytes], node: str) -> None:
    noted = {node: {"time": time.time(), "boot": "now"}}
    files["/var/lib/falsework/mcs/served.json"] = json.dumps(noted).encode()


def test_what_the_rules_allow_is_approved(site: ApproverProcess, requests: Requests, files: dict[str, bytes]) -> None:
    name = ask(site)
    (listed,) = requests.all()
    assert (listed.state, listed.reason, listed.machine) == ("Pending", "ConfigNotFetched", site.node("master-0"))
    with pytest.raises(FalseworkError, match="has not fetched its config"):
        requests.approve(name, force=False)
    serve(files, site.node("master-0"))
    assert requests.approve(name, force=False).decision == "approve"
    site.wait_for_certificate(name)
    assert requests.approve(name, force=False).decision == "approve", "what is approved stays so"
    (listed,) = requests.all()
    assert (listed.state, listed.reason) == ("Approved,Issued", "FalseworkApprove")


def test_a_person_may_know_better(site: ApproverProcess, requests: Requests, files: dict[str, bytes]) -> None:
    name = ask(site)
    files.clear()
    with pytest.raises(FalseworkError, match="cannot be asked: bootstrap is off") as caught:
        requests.approve(name, force=False)
    assert "--force" in str(caught.value.fix)
    requests.approve(name, force=True)
    site.wait_for_certificate(name)


def test_a_fetch_from_the_masters_counts(site: ApproverProcess, requests: Requests, files: dict[str, bytes]) -> None:
    """There may be no bootstrap machine any more."""
    name = ask(site)
    files.clear()
    fetch = json.dumps({"time": time.time(), "config": "rendered"})
    namespace = named("v1", "Namespace", names.NAMESPACE)
    site.admin.patch(NAMESPACES, names.NAMESPACE, namespace, kind=APPLY)
    noted = config_map(names.SERVED, names.NAMESPACE, {site.node("master-0"): fetch})
    site.admin.patch(CONFIG_MAPS, names.SERVED, noted, names.NAMESPACE, kind=APPLY)
    try:
        assert requests.approve(name, force=False).decision == "approve"
    finally:
        site.admin.patch(CONFIG_MAPS, names.SERVED, {"data": None}, names.NAMESPACE)


def test_what_is_denied_or_missing_is_said(site: ApproverProcess, requests: Requests) -> None:
    name = ask(site)
    decide.deny(site.admin, site.admin.get(CSRS, name), "because")
    with pytest.raises(FalseworkError, match="because"):
        requests.approve(name, force=True)
    with pytest.raises(FalseworkError, match="there is no certificate request"):
        requests.approve("nothing", force=True)


def test_the_approvers_own_word_is_shown(site: ApproverProcess, requests: Requests, files: dict[str, bytes]) -> None:
    ask(site)
    (listed,) = requests.all()
    said = {**listed.__dict__, "message": "as the approver said"}
    files[decisions.PATH] = json.dumps({"requests": [said], "eventsLeftOut": 0}).encode()
    (again,) = Requests(requests.client, requests.site, requests.read_file).all()
    assert again.message == "as the approver said"


def test_the_table(
    site: ApproverProcess, requests: Requests, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = ask(site, organizations=["system:masters"])
    monkeypatch.setattr(command, "_requests", lambda _: requests)
    assert command.run(argparse.Namespace(action="list", json=False)) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["NAME", "AGE", "MACHINE", "KIND", "STATE"]
    assert line.split()[0] == name
    assert line.endswith("the O is system:masters, not system:nodes")
    assert command.run(argparse.Namespace(action="list", json=True)) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["name"], entry["reason"], entry["state"]) == (name, "WrongOrganization", "Pending")
    assert command.run(argparse.Namespace(action="approve", name=name, force=True)) == 0
    assert f"{name} is approved" in capsys.readouterr().err
