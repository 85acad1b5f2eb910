from __future__ import annotations

from pathlib import Path

import pytest
from meter import Sample, anonymous_bytes, cpu_until
from outcome import POWER_ON, Outcome, steps_of, table
from up import conditions_met, stage_ends

from falsework.lab.folder import Lab
from falsework.machines.cgroups import Group
from falsework.stages.events import EventLog, Kind


def test_cpu_between_samples_is_taken_as_even() -> None:
    samples = [Sample(10.0, 0.0, 0), Sample(11.0, 2.0, 0), Sample(13.0, 4.0, 0)]
    assert [cpu_until(samples, moment) for moment in (9.0, 10.5, 11.0, 12.0, 20.0)] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_steps_follow_each_other_by_their_ends() -> None:
    moments = {"late": 16.0, "early": 11.0, POWER_ON: 12.0}
    steps = steps_of(10.0, moments, lambda moment: 2 * moment)
    assert [(step.name, step.seconds, step.since_power_on, step.cpu_seconds) for step in steps] == [
        ("early", 1.0, -1.0, 2.0),
        (POWER_ON, 1.0, 0.0, 2.0),
        ("late", 4.0, 4.0, 8.0),
    ]


def test_a_table_shows_details_where_they_belong() -> None:
    steps = steps_of(0.0, {"one": 1.0, "two": 3.0}, lambda _: 0.0)
    outcome = Outcome(steps, {"in between": 2.0}, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0)
    names = [line.split()[0] for line in table("title", outcome, details=True).splitlines()]
    assert names == ["title", "one", "in", "two", "in"]
    assert "in between" not in table("title", outcome, details=False)
    assert outcome.reached("two") == 3.0


def test_what_the_event_stream_tells(tmp_path: Path) -> None:
    lab = Lab.of(tmp_path / "site", tmp_path)
    lab.root.mkdir()
    log = EventLog(lab.events)
    log.add(Kind.STAGE, stage="helper", state="skipped")
    log.add(Kind.STAGE, stage="bootstrap-machine", state="started")
    log.add(Kind.CONDITION, waitsFor="bootstrap is up", holds=False)
    log.add(Kind.CONDITION, waitsFor="bootstrap is up", holds=True)
    log.add(Kind.STAGE, stage="bootstrap-machine", state="finished")
    assert list(stage_ends(lab)) == ["helper", POWER_ON, "bootstrap-machine"]
    assert list(conditions_met(lab)) == ["bootstrap is up"]


@pytest.mark.parametrize(("unified", "name"), [(False, "total_rss"), (True, "anon")])
def test_anonymous_memory_of_a_group(tmp_path: Path, unified: bool, name: str) -> None:
    (tmp_path / "memory.stat").write_text(f"cache 5\n{name} 4096\n")
    without = Group(tmp_path / "none", frozenset(("cpu",)), False)
    assert anonymous_bytes([without, Group(tmp_path, frozenset(("memory",)), unified)]) == 4096
