"""Conditions, waiting, and a log that does not repeat itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from falsework.in_machine import POD_ENTRY_POINTS
from falsework.operators.runtime.conditions import condition, status_of, updated, without
from falsework.operators.runtime.log import Changes
from falsework.operators.runtime.waiting import Backoff


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = updated([], [condition("Available", False, "Why", "because")], "t1")
    assert first == [
        {"type": "Available", "status": "False", "reason": "Why", "message": "because", "lastTransitionTime": "t1"}
    ]
    second = updated(first, [condition("Available", False, message="still"), condition("Degraded", None)], "t2")
    assert [entry["lastTransitionTime"] for entry in second] == ["t1", "t2"]
    assert second[0]["message"] == "still"
    assert "reason" not in second[0]
    third = updated(second, [condition("Available", True)], "t3")
    assert [entry["lastTransitionTime"] for entry in third] == ["t3", "t2"]
    assert (status_of(third, "Available"), status_of(third, "Degraded"), status_of(None, "Other")) == (True, None, None)
    assert without(third, "Available") == third[1:]


def test_pauses_grow_until_something_went_well() -> None:
    backoff = Backoff(1, 5)
    assert [backoff.pause() for _ in range(4)] == [1, 2, 4, 5]
    backoff.reset()
    assert backoff.pause() == 1


def test_the_same_is_said_once() -> None:
    said: list[str] = []
    changes = Changes(said.append)
    for text in ("a", "a", "b", "", "b"):
        changes.say("name", text)
    changes.say("other", "b")
    assert said == ["a", "b", "b", "b"]


@pytest.mark.parametrize("name", POD_ENTRY_POINTS)
def test_every_program_of_a_pod_starts_and_imports_little(name: str) -> None:
    heavy = "[name for name in ('cryptography', 'bcrypt', 'yaml') if name in sys.modules]"
    code = (
        f"import sys; from falsework.in_machine import main\ntry: main(['{name}', '--help'])\nfinally: print({heavy})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"usage: {name}" in done.stdout
    assert done.stdout.endswith("[]\n"), "every operator pays for it at its start"
