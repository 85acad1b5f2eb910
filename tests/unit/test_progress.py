import io

import pytest

from falsework.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_than_at_a_terminal_there_are_plain_lines() -> None:
    output = io.StringIO()
    with Progress(output) as progress, progress.task("etcd") as task:
        task.doing = "compiling"
        progress.say("a sentence")
        task.doing = "built"
    lines = output.getvalue().splitlines()
    assert lines[0] == "  a sentence"
    assert lines[1].split() == ["etcd", "0.0", "s", "built"]
    assert "\x1b" not in output.getvalue()


def test_at_a_terminal_what_is_under_way_is_redrawn_and_in_the_end_erased() -> None:
    output = Terminal()
    with Progress(output) as progress, progress.task("etcd"):
        progress.say("a sentence")
    assert "· etcd" in output.getvalue()
    assert output.getvalue().endswith("done\n")


def test_what_failed_is_said() -> None:
    output = io.StringIO()
    progress = Progress(output)
    with pytest.raises(RuntimeError), progress.task("etcd"):
        raise RuntimeError
    assert output.getvalue().split()[-1] == "failed"


def test_a_long_task_gives_a_sign_of_life() -> None:
    output = io.StringIO()
    with Progress(output, heartbeat=0.01) as progress, progress.task("etcd") as task:
        task.doing = "compiling"
        while "compiling …" not in output.getvalue():
            pass


def test_what_took_no_time_need_not_be_told_unless_it_failed() -> None:
    output = io.StringIO()
    progress = Progress(output)
    with progress.task("images", worth_telling=60.0):
        pass
    assert output.getvalue() == ""
    with pytest.raises(RuntimeError), progress.task("images", worth_telling=60.0):
        raise RuntimeError
    assert output.getvalue().split()[-1] == "failed"
