"""The one file with our code for machines."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from falsework import machine_code
from falsework.helper.boot_server_files import boot_server_unit
from falsework.in_machine import ENTRY_POINTS, main


def test_it_is_the_same_every_time() -> None:
    first, second = (machine_code.machine_code(*ENTRY_POINTS) for _ in range(2))
    assert first == second
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        names = archive.namelist()
        assert names == sorted(names)
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {"__main__.py", "falsework/__init__.py", "falsework/in_machine.py"} < set(names)
    assert len(first) < 200_000


@pytest.mark.parametrize(("names", "others"), [(("boot-server",), set()), (tuple(ENTRY_POINTS), {"yaml"})])
def test_it_needs_no_more_than_the_os_image_has(names: tuple[str, ...], others: set[str]) -> None:
    for name, path in machine_code.modules(*names).items():
        tops = {imported.partition(".")[0] for imported in machine_code.imported_by(path)}
        assert tops - sys.stdlib_module_names <= {"falsework", *others}, name


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_entry_point_starts_without_our_environment(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "falsework.pyz"
    archive.write_bytes(machine_code.machine_code(name))
    packages = tmp_path / "dist-packages"
    packages.mkdir()
    (packages / "yaml").symlink_to(Path(yaml.__file__).parent)
    start = (
        f"import runpy, sys; sys.path.append({str(packages)!r}); runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    )
    words = [getattr(sys, "_base_executable", sys.executable), "-I", "-c", start, archive, name, "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={}, cwd="/")
    assert done.returncode == 0, done.stderr
    assert name in done.stdout


@pytest.mark.parametrize("words", [[], ["nothing"]])
def test_another_word_is_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "boot-server" in capsys.readouterr().err


def test_the_unit_starts_it() -> None:
    unit = boot_server_unit()
    assert unit.enabled
    assert f"ExecStart=/usr/bin/python3 -I {machine_code.PATH} boot-server --port=8080\n" in str(unit.contents)
