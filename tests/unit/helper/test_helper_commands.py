"""falsework render, as typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helper_samples import ALCHEMY

from falsework.cli import main
from falsework.helper.render import FORMATS


def serials(folder: Path) -> set[int]:
    return {
        int(found) for path in folder.glob("*.zone") for found in re.findall(r"([0-9]+) ; serial", path.read_text())
    }


@pytest.mark.parametrize("name", FORMATS)
def test_print_json_and_write_say_the_same(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", name, "--dir", str(ALCHEMY)]) == 0
    printed = capsys.readouterr().out
    assert main(["render", name, "--dir", str(ALCHEMY), "--json"]) == 0
    files = json.loads(capsys.readouterr().out)
    assert main(["render", name, "--dir", str(ALCHEMY), "--output", str(tmp_path / "out")]) == 0
    written = {
        str(path.relative_to(tmp_path / "out")): path.read_text()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert written == files
    for path, text in files.items():
        assert text in printed
        assert len(files) == 1 or f" ===== {path} =====\n" in printed


def test_the_second_time_only_what_changed_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["render", "pxe", "--dir", str(ALCHEMY), "--output", str(tmp_path)]
    assert main(words) == 0
    (tmp_path / "boot.ipxe").write_text("something else\n")
    capsys.readouterr()
    assert main(words) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.endswith(" written")] == [f"{tmp_path}/boot.ipxe written"]


def test_a_serial_grows_with_every_run(tmp_path: Path) -> None:
    words = ["render", "bind", "--dir", str(ALCHEMY), "--output", str(tmp_path)]
    assert main(words) == 0
    first = serials(tmp_path)
    assert main(words) == 0
    assert len(first) == 1
    assert serials(tmp_path) == {first.pop() + 1}


def test_a_serial_in_use_is_passed(tmp_path: Path) -> None:
    (tmp_path / "old.zone").write_text("@ IN SOA ns1 admin ( 3000010100 3H 30M 2W 1W )\n")
    (tmp_path / "serial.txt").write_text("3000010107\n")
    words = ["render", "bind", "--dir", str(ALCHEMY), "--output", str(tmp_path / "out")]
    words += ["--previous", str(tmp_path / "old.zone"), "--previous", str(tmp_path / "serial.txt")]
    assert main(words) == 0
    assert serials(tmp_path / "out") == {3000010108}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["dnsmasq", "--previous", "x"], "--previous says nothing to dnsmasq"),
        (["bind", "--previous", "/nowhere/zone"], "/nowhere/zone cannot be read"),
        (["bind", "--previous", "/dev/null"], "/dev/null has no serial"),
    ],
)
def test_wrong_input_is_told(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", *words, "--dir", str(ALCHEMY)]) == 2
    assert sentence in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["render", "exports", "--dir", str(ALCHEMY), "--output", str(tmp_path / "file")]) == 1
    assert "cannot be written" in capsys.readouterr().err
