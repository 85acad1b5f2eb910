"""The runner: order, skipping, failing, going on, and a dry run that is honest."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from stage_samples import Recorder, context_in, events_of, lab_in, told

from falsework.errors import FalseworkError
from falsework.lab.access import changing
from falsework.stages import runner
from falsework.stages.catalogue import STAGES
from falsework.stages.conditions import Condition, Seen
from falsework.stages.context import Context
from falsework.stages.model import Stage


def test_stages_run_in_their_order_and_only_once(tmp_path: Path) -> None:
    recorder, context = Recorder(), context_in(tmp_path)
    stages = [recorder.stage(name) for name in ("one", "two", "three")]
    runner.run(context, stages)
    runner.run(context, stages)
    assert recorder.ran == ["one", "two", "three"]
    assert told(context) == [
        *((name, state) for name in ("one", "two", "three") for state in ("started", "finished")),
        *((name, "skipped") for name in ("one", "two", "three")),
    ]
    finished = [event for event in events_of(context) if event["state"] == "finished"]
    assert all(event["seconds"] >= 0 and event["cpuSeconds"] >= 0 for event in finished)
    assert told(context, "run") == [("", "started"), ("", "finished")] * 2


def test_until_names_the_last_stage() -> None:
    stages = [Recorder().stage(name) for name in ("one", "two", "three")]
    assert [stage.name for stage in runner.up_to(stages, "two")] == ["one", "two"]
    assert list(runner.up_to(stages, None)) == stages


def test_a_failure_is_noted_and_the_next_run_goes_on_there(tmp_path: Path) -> None:
    broken = True

    def maybe(_: Context) -> None:
        if broken:
            raise FalseworkError("the disk is full", cause="logs", fix="free some")

    recorder, context = Recorder(), context_in(tmp_path)
    stages = [recorder.stage("one"), recorder.stage("two", maybe), recorder.stage("three")]
    with pytest.raises(FalseworkError, match="the disk is full"):
        runner.run(context, stages)
    assert told(context)[-1] == ("two", "failed")
    assert told(context, "run")[-1] == ("", "failed")
    failed = next(event for event in events_of(context) if event["state"] == "failed")
    assert failed["error"] == {"what": "the disk is full", "cause": "logs", "fix": "free some"}
    broken = False
    runner.run(context, stages)
    assert recorder.ran == ["one", "two", "two", "three"]


def test_an_unexpected_error_and_an_interruption_are_noted_too(tmp_path: Path) -> None:
    def divide(_: Context) -> None:
        raise ZeroDivisionError("oops")

    def interrupt(_: Context) -> None:
        raise KeyboardInterrupt

    context = context_in(tmp_path)
    with pytest.raises(ZeroDivisionError):
        runner.run(context, [Recorder().stage("one", divide)])
    with pytest.raises(KeyboardInterrupt):
        runner.run(context, [Recorder().stage("two", interrupt)])
    assert told(context) == [("one", "started"), ("one", "failed"), ("two", "started"), ("two", "interrupted")]


def test_what_a_stage_promises_is_waited_for_before_the_next_begins(tmp_path: Path) -> None:
    recorder, context = Recorder(), context_in(tmp_path)
    looks = 0

    def probe() -> Seen:
        nonlocal looks
        looks += 1
        return Seen(looks > 3, f"look {looks}")

    condition = Condition("one/up", "one is up", probe, patience=10, cause="unknown", fix="look")
    waits = Stage("one", "Do one", "Because.", run=lambda _: None, conditions=lambda _: [condition])
    runner.run(context, [waits, recorder.stage("two")])
    assert looks == 4, "once to see whether it is done, then until it is"
    held = [event["holds"] for event in events_of(context) if event["kind"] == "condition"]
    assert held == [False, False, True]
    runner.run(context, [waits])
    assert told(context)[-1] == ("one", "skipped"), "without a look-up of its own a stage is done when they hold"


def test_a_dry_run_says_what_would_be_done_and_touches_nothing(tmp_path: Path) -> None:
    recorder, context = Recorder(done={"one"}), context_in(tmp_path, dry=True)
    planned = list(runner.dry_run(context, [recorder.stage("one"), recorder.stage("two")]))
    assert [(one.stage.name, one.done, one.steps) for one in planned] == [
        ("one", True, ()),
        ("two", False, ("would make two",)),
    ]
    assert recorder.ran == []
    assert list(tmp_path.iterdir()) == []


def test_only_one_changes_a_lab_at_a_time_and_the_second_is_told_who(tmp_path: Path) -> None:
    lab, said = lab_in(tmp_path), list[str]()
    waiting, order = threading.Event(), list[str]()

    def busy(line: str) -> None:
        said.append(line)
        waiting.set()

    def second() -> None:
        with changing(lab, busy):
            order.append("second")

    thread = threading.Thread(target=second)
    with changing(lab, said.append):
        thread.start()
        assert waiting.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert said == [f"process {os.getpid()} is changing this lab; waiting for it"]


def test_the_list_is_in_an_order_in_which_needs_come_first() -> None:
    names = [stage.name for stage in STAGES]
    assert len(set(names)) == len(names)
    for place, stage in enumerate(STAGES):
        assert set(stage.needs) <= set(names[:place]), stage.name
        assert stage.plan, f"{stage.name} must be able to say what it would do"
        assert stage.why.endswith((".", "?"))
