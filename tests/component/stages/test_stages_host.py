"""The first stages on this very host: what they find, what a kill leaves, and what destroy leaves (nothing)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.assets.catalogue import certificates_in
from falsework.lab.folder import Lab
from falsework.lab.marker import mark
from falsework.machines.share import offered_groups
from falsework.progress import Progress
from falsework.release import inventory
from falsework.release.cache import Cache
from falsework.release.inventory import Release
from falsework.release.payload import load_payload
from falsework.site.load import default_site
from falsework.stages import check_host, preflight
from falsework.stages.context import Context
from falsework.stages.destroy import destroy
from falsework.stages.events import EventLog, read_events
from falsework.stages.findings import Level
from host_snapshot import Snapshot, difference, snapshot
from kills import kills


@pytest.fixture
def lab(beside_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """With its state on the cache's file system, as preflight wants it."""
    monkeypatch.setenv("FALSEWORK_STATE", str(beside_cache / "state"))
    # Of its own, so that whatever is left in it was left by this lab.
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    lab = Lab.of(tmp_path / "site")
    yield lab
    destroy(lab, print)


def look(lab: Lab) -> Snapshot:
    return snapshot(lab, ("overlay-trial",), lab.site_folder.with_name("temporary"))


def context_of(lab: Lab) -> Context:
    mark(lab)
    return Context(lab, default_site, Progress(io.StringIO()), EventLog(lab.events))


def falsework(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "falsework", *map(str, words)]


def done(*words: str | Path, code: int = 0) -> str:
    finished = subprocess.run(falsework(*words), capture_output=True, text=True, check=False, timeout=600)
    assert finished.returncode == code, finished.stdout + finished.stderr
    return finished.stdout


@pytest.mark.usefixtures("release")
def test_this_host_is_good_enough_and_the_trials_leave_nothing(lab: Lab) -> None:
    context = context_of(lab)
    preflight.examine(context, preflight.CHECKS)
    before = look(lab)
    found = preflight.examine(context, preflight.CHECKS)
    assert difference(before, look(lab)) == []
    assert [str(finding) for finding in found if finding.level in (Level.PROBLEM, Level.WARNING)] == []
    assert context.journal.standing() == []


def test_the_release_is_found_as_it_was_built(lab: Lab, release: Release, cache: Cache) -> None:
    assert inventory.find(cache, load_payload()) == release


def test_a_trial_that_was_killed_is_removed_by_destroy(lab: Lab) -> None:
    before = look(lab)
    context = context_of(lab)
    trial = f"{lab.id}.preflight"
    context.journal.creating(check_host.TRIAL, trial)
    for group in offered_groups():
        group.child(trial).path.mkdir()
    assert any(line.startswith("cgroups: new") for line in difference(before, look(lab)))
    destroy(lab, print)
    assert difference(before, look(lab)) == []


def test_trials_that_fail_are_problems_with_a_way_out(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    context = context_of(lab)
    folder = lab.root.parent / "bin"
    folder.mkdir()
    for name in ("mount", "ip"):
        (folder / name).write_text(f"#!/bin/sh\necho {name}: Operation not permitted >&2\nexit 1\n")
        (folder / name).chmod(0o755)
    before = look(lab)
    for check, what in ((check_host.overlay, "overlay mounts"), (check_host.network, "network cannot be made")):
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
            (found,) = check(context)
        assert found.level is Level.PROBLEM
        assert what in found.what
        assert "Operation not permitted" in found.what
        assert found.fix
    assert difference(before, look(lab)) == []


@pytest.mark.usefixtures("release")
def test_up_status_and_destroy_leave_the_host_as_it_was(lab: Lab) -> None:
    lab.root.parent.mkdir(exist_ok=True)
    before = look(lab)
    at = ("--dir", lab.site_folder)
    done("up", *at, "--dry-run", "--until", "assets")
    assert difference(before, look(lab)) == []
    assert not lab.site_folder.exists()
    events = [json.loads(line) for line in done("up", *at, "--until", "assets", "--json").splitlines()]
    assert events == list(read_events(lab.events))
    finished = {event["stage"] for event in events if event["kind"] == "stage" and event["state"] == "finished"}
    assert finished - {"release"} == {"preflight", "assets"}, "the release is most often here already"
    status = json.loads(subprocess.run(falsework("status", *at, "--json"), capture_output=True, check=False).stdout)
    states = {stage["name"]: stage["state"] for stage in status["stages"]}
    assert states["preflight"] == "passed"
    assert states["assets"] == "done"
    done("destroy", *at, code=2)
    assert "the lab's folder" in done("destroy", *at, "--yes", "--assets")
    assert difference(before, look(lab)) == []
    assert list(lab.site_folder.iterdir()) == []
    done("destroy", *at, "--yes")


@pytest.mark.usefixtures("release")
def test_killed_at_moments_nobody_chose_it_goes_on(lab: Lab) -> None:
    lab.root.parent.mkdir(exist_ok=True)
    before = look(lab)
    up = ("up", "--dir", lab.site_folder, "--until", "assets")
    chance = random.Random()  # noqa: S311 - moments, not secrets
    started = time.monotonic()
    done(*up)
    whole = time.monotonic() - started
    for _ in range(kills(2)):
        done("destroy", "--dir", lab.site_folder, "--yes", "--assets")
        with subprocess.Popen(falsework(*up), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            moment = chance.uniform(0, whole)
            time.sleep(moment)
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGKILL)
        done(*up)
        assert all(entry.problem is None for entry in certificates_in(default_site(), lab.site_folder)), moment
    done("destroy", "--dir", lab.site_folder, "--yes", "--assets")
    assert difference(before, look(lab)) == []


@pytest.mark.usefixtures("release")
def test_two_at_once_take_turns(lab: Lab) -> None:
    up = falsework("up", "--dir", lab.site_folder, "--until", "assets")
    children = [subprocess.Popen(up, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [child.communicate(timeout=600)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    states = [event["state"] for event in read_events(lab.events) if event.get("stage") == "assets"]
    assert states == ["started", "finished", "skipped"]


def test_a_difference_is_readable(lab: Lab) -> None:
    lab.root.parent.mkdir(exist_ok=True)
    before = look(lab)
    with subprocess.Popen([sys.executable, "-c", "input()", lab.id], stdin=subprocess.PIPE) as child:
        mark(lab)
        assert difference(before, look(lab)) == [
            f"processes: new: {child.pid} {sys.executable} -c input() {lab.id}",
            f"state: new: {lab.id}",
            f"state: new: {lab.id}/lab.json",
        ]
        child.kill()
