"""One cluster, brought up as a person does it, for all tests that do not break it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from api_poller import polling
from kubectl_watch import watching
from lab_under_test import LabUnderTest, lab_up_to
from raised_cluster import UP_LIMIT, Raised

AFTERWARDS = 3.0
"""Seconds the clients go on once the bootstrap is gone."""


@pytest.fixture(scope="session")
def raised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raised]:
    folder = tmp_path_factory.mktemp("raised")
    with lab_up_to("helper", folder) as lab:
        with polling(lab, folder / "polled.json") as polled, watching(lab) as watched:
            lab.run("up", "--until", "pivot", limit=UP_LIMIT)
            time.sleep(AFTERWARDS)
        print(f"\npoller: {polled}\nkubectl get -w: {watched}")
        lab.run("up", limit=UP_LIMIT)
        yield Raised(lab, polled, watched)


@pytest.fixture
def lab(raised: Raised) -> LabUnderTest:
    return raised.lab
