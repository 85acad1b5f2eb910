"""bootkube killed at ten moments between power on and a working control plane: each time it finishes."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator

import pytest

from falsework.machines.provider import Power
from falsework.process import CommandError
from lab_under_test import LabUnderTest, lab_up_to

RUNS = 10
SEED = 20261116


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabUnderTest]:
    with lab_up_to("helper", tmp_path_factory.mktemp("kills")) as lab:
        yield lab


@pytest.mark.parametrize("run", range(RUNS))
def test_bootkube_killed_on_its_way_finishes(lab: LabUnderTest, run: int) -> None:
    moment = random.Random(SEED + run).uniform(0.0, 8.0)  # noqa: S311 - the same moments in every run
    lab.machines.destroy("bootstrap")
    lab.run("machine", "start", "bootstrap", "--no-wait")
    lab.until("bootstrap", Power.RUNNING)
    time.sleep(moment)
    # It may be between two starts, or not started yet.
    with contextlib.suppress(CommandError):
        lab.inside("bootstrap", "systemctl", "kill", "--signal=KILL", "bootkube.service")
    lab.until_ready()
    deadline = time.monotonic() + 120
    while "are in the cluster." not in lab.inside(
        "bootstrap", "journalctl", "-u", "bootkube", "-o", "cat", "--no-pager"
    ):
        assert time.monotonic() < deadline
        time.sleep(0.5)
