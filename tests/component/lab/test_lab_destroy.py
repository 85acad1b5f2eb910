"""After `destroy` the host is as it was: after a normal run, after kills at any moment, after a restart of the host."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.lab.journal import Journal
from falsework.machines import cgroups, share
from falsework.machines.provider import Power
from falsework.release.inventory import Release
from host_snapshot import Snapshot, difference, snapshot
from kills import kills
from lab_under_test import LabUnderTest

SEED = 20261115


@pytest.fixture
def lab(beside_cache: Path, release: Release, tmp_path: Path) -> Iterator[LabUnderTest]:
    lab = LabUnderTest.below(beside_cache / "destroy-state", tmp_path)
    yield lab
    lab.run("destroy", "--yes")


def look(lab: LabUnderTest) -> Snapshot:
    return snapshot(lab.lab, (), lab.temporary)


def kill_after(lab: LabUnderTest, seconds: float, *words: str) -> None:
    child = lab.start(*words)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def test_after_a_normal_run_and_after_kills_at_any_moment_nothing_is_left(lab: LabUnderTest) -> None:
    before = look(lab)
    began = time.monotonic()
    lab.run("up", "--until", "helper")
    whole = time.monotonic() - began
    lab.run("machine", "start", "bootstrap")
    lab.run("machine", "start", "master-0", "--no-wait")
    lab.until("master-0", Power.RUNNING)
    lab.run("destroy", "--yes")
    assert difference(before, look(lab)) == []
    assert "there is no lab" in lab.run("destroy", "--yes")
    moments = random.Random(SEED)  # noqa: S311 - the same moments in every run
    for _ in range(kills(3)):
        kill_after(lab, moments.uniform(0.1, whole), "up", "--until", "helper")
        lab.run("destroy", "--yes")
        assert difference(before, look(lab)) == []


def test_after_a_restart_of_the_host_it_goes_on_and_nothing_is_left(lab: LabUnderTest) -> None:
    before = look(lab)
    lab.run("up", "--until", "helper")
    lab.run("machine", "start", "bootstrap")
    # All processes at once, none of which had the time to say anything.
    cgroups.kill(share.noted_groups(Journal(lab.lab.journal)))
    lab.run("up", "--until", "helper")
    lab.run("machine", "start", "bootstrap")
    assert lab.inside("bootstrap", "systemctl", "is-active", "containerd") == "active"
    cgroups.kill(share.noted_groups(Journal(lab.lab.journal)))
    lab.run("destroy", "--yes")
    assert difference(before, look(lab)) == []


def test_after_kills_a_new_run_goes_on_and_so_does_a_new_destroy(lab: LabUnderTest) -> None:
    before = look(lab)
    moments = random.Random(SEED + 1)  # noqa: S311 - the same moments in every run
    for _ in range(kills(2)):
        kill_after(lab, moments.uniform(0.3, 3.0), "up", "--until", "helper")
    lab.run("up", "--until", "helper")
    assert lab.run("shell", "-c", "dig +short api.lab.falsework.test") == "192.168.126.2\n"
    for _ in range(kills(4)):
        kill_after(lab, moments.uniform(0.2, 0.6), "destroy", "--yes")
    lab.run("destroy", "--yes")
    assert difference(before, look(lab)) == []
