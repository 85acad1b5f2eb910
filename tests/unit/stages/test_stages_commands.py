"""falsework up, status and destroy, as typed."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from stage_samples import Recorder, context_in

from falsework.cli import main
from falsework.cli import status as status_command
from falsework.cli import up as up_command
from falsework.errors import FalseworkError
from falsework.files import only_one
from falsework.lab.folder import Lab
from falsework.lab.marker import mark
from falsework.stages.context import Context
from falsework.stages.events import EventLog, Kind
from falsework.stages.status import status_of

Captured = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("FALSEWORK_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)
    return Lab.of(tmp_path / "lab")


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    stages = tuple(recorder.stage(name) for name in ("one", "two"))
    for module in (up_command, status_command):
        monkeypatch.setattr(module, "STAGES", stages)
    return recorder


def test_up_goes_as_far_as_it_is_told(lab: Lab, recorder: Recorder, capsys: Captured) -> None:
    assert main(["up", "--until", "one"]) == 0
    assert recorder.ran == ["one"]
    assert main(["up"]) == 0
    assert recorder.ran == ["one", "two"]
    captured = capsys.readouterr()
    assert "Done up to one. `falsework up --dir lab` goes on with two." in captured.out
    assert "lab.falsework.test is up" in captured.out
    assert [line.split()[:2] for line in captured.err.splitlines()] == [["Do", "one"], ["Do", "one"], ["Do", "two"]]
    assert lab.root.stat().st_mode & 0o777 == 0o700


def test_up_prints_events_as_json_lines(lab: Lab, recorder: Recorder, capsys: Captured) -> None:
    assert main(["up", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(event["kind"], event["state"]) for event in events] == [
        ("run", "started"),
        *[("stage", "started"), ("stage", "finished")] * 2,
        ("run", "finished"),
    ]


def test_a_dry_run_touches_nothing(lab: Lab, recorder: Recorder, tmp_path: Path, capsys: Captured) -> None:
    recorder.done.add("one")
    assert main(["up", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == ["one: done", "two: Because of two.", "  would make two"]
    assert main(["up", "--dry-run", "--json", "--until", "one"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stage": "one", "done": True, "steps": []}
    assert list(tmp_path.iterdir()) == []


def test_a_site_that_cannot_be_used_touches_nothing(lab: Lab, recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("distribution: okd\n")
    assert main(["up"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["site.yaml"]


def test_ctrl_c_says_how_to_go_on(
    lab: Lab, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def interrupt(_: Context) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(up_command, "STAGES", (recorder.stage("one", interrupt),))
    assert main(["up"]) == 130
    said = capsys.readouterr().err
    assert "everything stays as it is; `falsework destroy --dir lab` would remove it" in said
    assert "the same command goes on" in said


def test_without_root_one_is_told_so(
    lab: Lab, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def refused(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("falsework.lab.access.only_one", refused)
    assert main(["up"]) == 1
    said = capsys.readouterr().err
    assert f"{lab.lock} is not writable" in said
    assert "run as root, or set FALSEWORK_STATE" in said


def test_a_lab_nobody_else_may_look_into_is_explained(
    lab: Lab, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("falsework.stages.status.read_events", refused)
    assert main(["status"]) == 1
    assert "run the same command with sudo" in capsys.readouterr().err


def test_status_is_looked_up_and_its_json_is_stable(lab: Lab, recorder: Recorder, capsys: Captured) -> None:
    assert main(["status", "--json"]) == 1
    first = json.loads(capsys.readouterr().out)
    assert [stage["state"] for stage in first["stages"]] == ["waiting", "waiting"]
    assert first["lab"]["exists"] is False
    assert not lab.root.exists()
    assert main(["up"]) == 0
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert list(status) == [*("schema", "lab", "stages", "conditions", "machines", "certificateRequests", "events")]
    assert list(status["lab"]) == ["id", "cluster", "siteFolder", "folder", "exists", "changedBy"]
    assert list(status["stages"][0]) == [
        *("name", "title", "why", "state", "since", "seconds", "cpuSeconds", "error"),
    ]
    assert status["schema"] == 1
    assert {machine["power"] for machine in status["machines"]} == {"absent"}
    assert [machine["name"] for machine in status["machines"]][:2] == ["helper", "bootstrap"]
    recorder.done.clear()
    assert main(["status"]) == 1
    assert "one          waiting" in capsys.readouterr().out, "what was done and is not any more is not done"


def test_status_tells_what_is_under_way_what_failed_and_why(tmp_path: Path) -> None:
    recorder, context = Recorder(), context_in(tmp_path)
    stages = [recorder.stage(name) for name in ("one", "two", "three")]
    log = EventLog(context.lab.events)
    log.add(Kind.STAGE, stage="one", state="started")
    log.add(Kind.STAGE, stage="one", state="failed", seconds=1.5, cpuSeconds=0.5, error={"what": "x", "fix": "y"})
    log.add(Kind.STAGE, stage="two", state="started")
    log.add(
        Kind.CONDITION,
        stage="two",
        name="dns",
        waitsFor="dns answers",
        holds=False,
        state="no answer",
        error="refused",
        evidence="log",
        forSeconds=3.0,
    )
    with only_one(context.lab.lock, print):
        status = status_of(context, stages, machines=lambda _: [])
    assert [stage["state"] for stage in status["stages"]] == ["failed", "doing", "waiting"]
    assert status["stages"][0]["error"] == {"what": "x", "fix": "y"}
    assert status["stages"][0]["seconds"] == 1.5
    (condition,) = status["conditions"]
    assert (condition["waitsFor"], condition["state"], condition["error"]) == ("dns answers", "no answer", "refused")
    assert [stage["state"] for stage in status_of(context, stages)["stages"]] == ["failed", "interrupted", "waiting"]


def test_status_of_what_cannot_be_seen(tmp_path: Path) -> None:
    def broken(_: Context) -> bool:
        raise FalseworkError("the cache is damaged", fix="mend it")

    context = context_in(tmp_path)
    stage = Recorder().stage("one")
    blind = type(stage)("blind", "Look", "Because.", run=lambda _: None)
    unsure = type(stage)("unsure", "Look", "Because.", run=lambda _: None, done=broken)
    EventLog(context.lab.events).add(Kind.STAGE, stage="blind", state="finished", seconds=1.0)
    status = status_of(context, [blind, unsure])
    assert [one["state"] for one in status["stages"]] == ["passed", "unknown"]
    assert status["stages"][1]["error"]["what"] == "the cache is damaged"


def test_watching_prints_what_changes_until_all_is_done(
    lab: Lab, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: recorder.done.add("two" if recorder.done else "one"))
    assert main(["status", "--watch"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(("  one", "  two"))] == [
        ["one", "waiting"],
        ["two", "waiting"],
        ["one", "done"],
        ["two", "done"],
    ]


def test_destroy_asks_and_in_scripts_wants_to_be_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    mark(lab)
    assert main(["destroy"]) == 2
    assert "add --yes" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert main(["destroy"]) == 0
    assert f"{lab.root} with everything in it" in capsys.readouterr().out
    assert lab.root.is_dir()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert main(["destroy"]) == 0
    assert "removed the lab's folder" in capsys.readouterr().out
    assert not lab.root.exists()
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert main(["destroy"]) == 0
    assert "there is no lab of" in capsys.readouterr().out
    assert list(lab.root.parent.iterdir()) == []


def test_destroy_needs_no_site(lab: Lab, tmp_path: Path) -> None:
    lab.site_folder.mkdir()
    (lab.site_folder / "site.yaml").write_text("[")
    mark(lab)
    assert main(["destroy", "--yes", "--dir", "lab"]) == 0
    assert not lab.root.exists()
    assert (lab.site_folder / "site.yaml").exists()


def test_destroy_removes_assets_when_told_and_never_a_persons_files(lab: Lab, capsys: Captured) -> None:
    assert main(["create", "manifests", "--dir", "lab"]) == 0
    folder = lab.site_folder
    manifests = sorted((folder / "manifests").iterdir())
    manifests[0].write_text("mine now")
    (folder / "manifests/own.yaml").write_text("mine")
    (folder / "notes").write_text("mine")
    assert main(["destroy", "--yes", "--dir", "lab"]) == 0
    assert manifests[1].exists()
    capsys.readouterr()
    assert main(["destroy", "--yes", "--assets", "--dir", "lab"]) == 0
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert left == sorted([f"manifests/{manifests[0].name}", "manifests/own.yaml", "notes"])
    assert sorted(path.name for path in folder.iterdir()) == ["manifests", "notes"], "no empty folders either"
    assert f"kept, because they were changed by hand: manifests/{manifests[0].name}" in capsys.readouterr().out
    assert main(["destroy", "--yes", "--assets", "--dir", "lab"]) == 0


def test_requests_that_wait_are_shown_but_not_all_of_them(
    lab: Lab, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    told = [
        {"name": f"csr-{number}", "machine": "", "requester": "someone", "message": "is no machine's join identity"}
        for number in range(7)
    ]
    monkeypatch.setattr("falsework.stages.status.requests_waiting", lambda _: told)
    main(["status"])
    lines = capsys.readouterr().out.splitlines()
    assert "  request csr-4 (someone) is not approved: is no machine's join identity" in lines
    assert lines[-1] == "  and 2 more: falsework csr list"
