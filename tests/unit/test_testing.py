"""`falsework test`: which commands it runs at the same time, and what is seen of them."""

import os
from pathlib import Path

import pytest

from falsework.cli import test as command


def test_every_component_test_runs_once() -> None:
    ((others, machines),) = command._steps("component", [])
    apart = machines[1:]
    assert [path for path in apart if not (command.ROOT / path).exists()] == []
    assert others == ["pytest", "tests/component", *(f"--ignore={path}" for path in apart)]


def test_who_asks_for_some_tests_sees_them_at_work() -> None:
    assert command._steps("component", ["-k", "lab"]) == [[["pytest", "tests/component", "-k", "lab"]]]


@pytest.mark.parametrize("failing", ["first", "second", "none"])
def test_side_by_side(tmp_path: Path, capfd: pytest.CaptureFixture[str], failing: str) -> None:
    """Each waits for the other, so they run at the same time; what the second said is shown after the first."""
    program = (
        "import pathlib, sys, time; own, other, failing = sys.argv[1:]\n"
        "pathlib.Path(own).touch()\n"
        "while not pathlib.Path(other).exists(): time.sleep(0.01)\n"
        "print('this is', own); sys.exit(own == failing)\n"
    )
    (tmp_path / "waiting.py").write_text(program)
    commands = [["waiting", "first", "second", failing], ["waiting", "second", "first", failing]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "ROOT", tmp_path)
        assert command._run_side_by_side(commands, dict(os.environ)) == (failing == "none")
    assert capfd.readouterr().out == "this is first\nthis is second\n"
