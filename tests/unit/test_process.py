import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from falsework.process import CommandError, daemon, lines, run


def test_both_streams_are_returned_apart() -> None:
    finished = run(("sh", "-c", "echo out; echo err >&2"))
    assert (finished.output, finished.complaints) == ("out\n", "err\n")


def test_a_failure_tells_the_exit_code_and_the_last_lines() -> None:
    with pytest.raises(CommandError) as caught:
        run(("sh", "-c", "seq 100; exit 3"))
    assert "exit code 3" in caught.value.what
    assert (caught.value.cause or "").split() == [str(number) for number in range(95, 101)]


def test_a_program_that_is_not_there_is_an_error_like_any_other() -> None:
    with pytest.raises(CommandError) as caught:
        run(("no-such-program",))
    assert "no-such-program" in str(caught.value)


def test_a_silent_program_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(CommandError) as caught:
        run(("sh", "-c", f"sleep 3600 & echo $$ $! >{pids}; echo begun; sleep 3600"), silence_limit=3.0)
    assert "did nothing for" in caught.value.what
    assert caught.value.cause == "begun"
    for pid in map(int, pids.read_text().split()):
        _wait_for(lambda pid=pid: not _alive(pid))  # type: ignore[misc]


def test_only_the_given_environment_reaches_the_program() -> None:
    output = run(("/usr/bin/env",), only_env={"PATH": os.environ["PATH"], "ONLY": "this"}).output
    assert {line.split("=")[0] for line in output.splitlines()} == {"PATH", "ONLY"}


def test_lines_are_handed_on_as_they_come(tmp_path: Path) -> None:
    seen: list[str] = []
    heard = tmp_path / "one"
    # It says the rest only when the first has been heard.
    script = f"printf 'one\\ntw'; {_until(heard)}; printf 'o\\n\\xff\\nno newline'; echo not this >&2"

    def hear(line: str) -> None:
        seen.append(line)
        heard.touch()

    finished = run(("bash", "-c", script), each_line=hear, silence_limit=60)
    assert seen == ["one", "two", "\ufffd", "no newline"]
    assert finished.output.startswith("one\ntwo\n")


def test_a_line_without_end_is_cut() -> None:
    seen: list[str] = []
    run(("sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"), each_line=seen.append)
    assert len(seen) > 1
    assert sum(map(len, seen)) == 1000000


def test_an_exception_over_a_line_ends_the_program() -> None:
    pids: list[int] = []

    def first_is_enough(line: str) -> None:
        pids.append(int(line))
        raise KeyError

    with pytest.raises(KeyError):
        run(("sh", "-c", "echo $$; sleep 3600; echo again"), each_line=first_is_enough)
    assert not _alive(pids[0])


def test_a_child_dies_with_a_killed_falsework(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = (
        f"from falsework.process import run; run(('sh', '-c', 'echo $$ >{mark}.new; mv {mark}.new {mark}; sleep 300'))"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    _wait_for(mark.exists)
    child = int(mark.read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _wait_for(lambda: not _alive(child))


def test_a_daemon_is_used_when_it_says_it_is_ready_and_ended_after(tmp_path: Path) -> None:
    notify = (
        "import os, socket, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
        "print(os.getpid(), flush=True); s.sendto(b'READY=1', os.environ['NOTIFY_SOCKET']); time.sleep(300)"
    )
    with daemon((sys.executable, "-c", notify), log=tmp_path / "log"):
        pid = int((tmp_path / "log").read_text())
        assert _alive(pid)
    assert not _alive(pid)


def test_a_daemon_behind_a_wrapper_that_ignores_signals_is_ended_too(tmp_path: Path) -> None:
    notify = "import os, socket; socket.socket(1, 2).sendto(b'READY=1', os.environ['NOTIFY_SOCKET']); input()"
    wrapper = ("sh", "-c", 'trap "" TERM; tail -f /dev/null | env --default-signal=TERM "$@"', "wrapper")
    with daemon((*wrapper, sys.executable, "-c", notify), log=tmp_path / "log", patience=180):
        started = time.monotonic()
    assert time.monotonic() - started < 60


def test_a_daemon_that_ends_instead_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(CommandError, match="did not get ready") as caught,
        daemon(("sh", "-c", "echo no config; exit 1"), log=tmp_path / "log"),
    ):
        pytest.fail("it was never ready")
    assert caught.value.cause == "no config"


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _until(path: Path) -> str:
    """What a script does until a file is there."""
    return f"until [ -e {path} ]; do sleep 0.01; done"


def test_lines_come_while_the_program_runs(tmp_path: Path) -> None:
    program = f"echo one; echo complaint >&2; {_until(tmp_path / 'go-on')}; printf 'two\nthree'"
    found = lines(["sh", "-c", program], quiet=0.1)
    assert next(line for line in found if line) == "one"
    # It is said again and again, as whoever waits may have something else to look at.
    assert [next(found), next(found)] == ["", ""]
    (tmp_path / "go-on").touch()
    assert [line for line in found if line] == ["two", "three"]


def test_lines_of_a_program_that_ends_badly() -> None:
    found = lines(["sh", "-c", "echo one; echo no good >&2; exit 3"], quiet=5)
    assert next(found) == "one"
    with pytest.raises(CommandError, match="exit code 3") as caught:
        list(found)
    assert caught.value.cause == "no good"


def test_a_program_whose_lines_nobody_wants_is_ended() -> None:
    found = lines(["sh", "-c", "echo $$; exec sleep 1000"], quiet=5)
    pid = int(next(found))
    assert isinstance(found, Generator)
    found.close()
    assert not Path(f"/proc/{pid}").exists()
