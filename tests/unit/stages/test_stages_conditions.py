"""Waiting: it ends when nothing changes any more, never because it has been long."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from falsework.errors import FalseworkError
from falsework.stages.conditions import PROBE_INTERVAL, Condition, NoProgressError, Seen, wait_for


class Clock:
    """Time passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def condition(probe: Callable[[], Seen], patience: float = 10.0, name: str = "dns") -> Condition:
    return Condition(
        name, f"{name} answers", probe, patience, cause="it was not started", fix="run `falsework console`"
    )


def waited(*conditions: Condition, clock: Clock | None = None) -> tuple[float, list[tuple[str, Seen]]]:
    """How long it took, and what was told on the way."""
    clock = clock or Clock()
    told: list[tuple[str, Seen]] = []
    wait_for(conditions, lambda one, seen, _: told.append((one.name, seen)), pause=clock.pause, clock=clock)
    return clock.now - 1000, told


def test_as_long_as_there_is_progress_there_is_no_limit() -> None:
    steps = count()

    def slow() -> Seen:
        step = next(steps) // 100
        return Seen(step == 30, f"{step} of 30")

    seconds, told = waited(condition(slow))
    assert seconds > 100, "ten times its patience"
    assert [seen.state for _, seen in told] == [f"{step} of 30" for step in range(31)]


def test_without_progress_it_gives_up_and_says_everything() -> None:
    clock = Clock()
    silent = condition(lambda: Seen(False, "no answer", "connection refused", "journalctl -u dnsmasq"))
    with pytest.raises(NoProgressError) as caught:
        waited(silent, clock=clock)
    assert clock.now - 1000 == pytest.approx(10, abs=0.2)
    error = caught.value
    assert error.what == "no progress for 10 s while waiting for: dns answers (no answer)"
    assert error.cause == "it was not started; last error: connection refused; see journalctl -u dnsmasq"
    assert error.fix == "run `falsework console`"


def test_going_back_and_forth_is_no_progress() -> None:
    steps = count()
    with pytest.raises(NoProgressError):
        waited(condition(lambda: Seen(False, ("up", "down")[next(steps) % 2])))


def test_progress_of_one_keeps_the_wait_for_the_others_alive() -> None:
    steps, clock = count(), Clock()

    def slow() -> Seen:
        step = next(steps) // 100
        return Seen(step == 4, f"{step} of 4")

    booted = condition(slow, name="boot")
    seconds, _ = waited(booted, condition(lambda: Seen(clock.now > 1018, "waits for boot")), clock=clock)
    assert seconds > 17, "longer than its own patience, because the other one went on"


@pytest.mark.parametrize("error", [FalseworkError("it broke", cause="rust"), OSError(111, "Connection refused")])
def test_what_a_probe_raises_is_what_went_wrong(error: Exception) -> None:
    def probe() -> Seen:
        raise error

    with pytest.raises(NoProgressError) as caught:
        waited(condition(probe))
    assert "last error: it broke: rust" in str(caught.value) or "Connection refused" in str(caught.value)


def test_an_error_that_is_always_another_does_not_flood_the_stream() -> None:
    steps = count()

    def probe() -> Seen:
        step = next(steps)
        return Seen(step == 100, "up" if step == 100 else "no answer", error=f"at {step}")

    seconds, told = waited(condition(probe, patience=60))
    assert seconds == pytest.approx(10, abs=0.1)
    assert len(told) <= 12


def test_a_watch_wakes_the_wait() -> None:
    pauses: list[float] = []
    seen = iter([Seen(False, "no"), Seen(True, "yes")])
    wait_for([condition(lambda: next(seen))], lambda *_: None, pause=pauses.append)
    assert pauses == [PROBE_INTERVAL]


def test_together_means_all_at_one_time() -> None:
    """Each has held once after ten looks, both together only after twenty."""
    steps = count()

    def first() -> Seen:
        step = next(steps)
        return Seen(step < 5 or step >= 20, "at rest" if step < 5 or step >= 20 else "at work")

    def second() -> Seen:
        return Seen(clock.now >= 1001, "done" if clock.now >= 1001 else "under way")

    clock = Clock()
    told: list[Seen] = []
    wait_for(
        [condition(first, name="a"), condition(second, name="b")],
        lambda _, seen, __: told.append(seen),
        together=True,
        pause=clock.pause,
        clock=clock,
    )
    assert next(steps) == 21
    assert [seen.state for seen in told] == ["at rest", "under way", "at work", "done", "at rest"]


def test_one_that_never_stays_at_rest_is_given_up() -> None:
    steps, clock = count(), Clock()
    restless = condition(lambda: Seen(next(steps) % 2 == 0, "moving"), name="a")
    never = condition(lambda: Seen(False, "under way"), name="b")
    with pytest.raises(NoProgressError) as caught:
        wait_for([restless, never], lambda *_: None, together=True, pause=clock.pause, clock=clock)
    assert "b answers (under way)" in caught.value.what
