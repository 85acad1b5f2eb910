import argparse
import tempfile
from pathlib import Path

import pytest

from falsework.cli import main, release


def test_an_error_is_told_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FALSEWORK_CACHE", str(tmp_path))
    assert main(["release", "verify"]) == 1
    error = capsys.readouterr().err
    assert f"the release is not on this host (looked in {tmp_path})" in error
    assert "next:  run `falsework release build`" in error


@pytest.mark.parametrize(
    ("name", "answer", "sentence", "way_out"),
    [
        ("os.geteuid", 1000, "which only root can make", "run the same command with sudo"),
        ("platform.machine", "riscv64", "this host is riscv64; the release is pinned for x86_64", "use an x86_64 host"),
    ],
)
def test_a_host_that_cannot_build_is_told_so_before_anything_is_done(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    answer: object,
    sentence: str,
    way_out: str,
) -> None:
    monkeypatch.setenv("FALSEWORK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(name, lambda: answer)
    assert main(["release", "build"]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert way_out in error
    assert not (tmp_path / "cache").exists()


def test_a_fault_of_our_own_goes_to_a_file_not_to_the_person(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(options: argparse.Namespace) -> int:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(release, "run", broken)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["release", "info"]) == 70
    error = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in error
    assert "Traceback" not in error
    (log,) = tmp_path.iterdir()
    assert "Traceback" in log.read_text()
    assert str(log) in error


def test_ctrl_c_is_an_ordinary_event(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(release, "run", interrupted)
    assert main(["release", "info"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_every_release_action_is_offered_and_none_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["release", "--help"])
    offered = capsys.readouterr().out
    for action in release.ACTIONS:
        assert f"\n    {action} " in offered


def test_an_unknown_command_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["relaese"])
    assert caught.value.code == 2
    assert "release" in capsys.readouterr().err
