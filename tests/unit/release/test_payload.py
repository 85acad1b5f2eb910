"""The lists in the repository fit together, and name nothing that is not pinned."""

import re
from pathlib import Path

import pytest

from falsework.release.own_image import LOCK, PYTHON_ROOT
from falsework.release.payload import MODULES, GoUnit, load_payload

PAYLOAD = load_payload()


def test_every_program_and_root_has_a_pin_and_nothing_else_has() -> None:
    programs = {name for unit in PAYLOAD.go_units.values() for name in unit.binaries}
    assert programs | set(PAYLOAD.c_programs) | set(PAYLOAD.debian_roots) == set(PAYLOAD.pins)


def test_images_and_the_os_use_programs_that_exist() -> None:
    known = set(PAYLOAD.pins)
    assert {name for image in PAYLOAD.images.values() for name in image.programs} <= known
    assert {image.base for image in PAYLOAD.images.values() if image.base} <= set(PAYLOAD.debian_roots)
    assert set(PAYLOAD.os_programs) <= known
    assert PYTHON_ROOT in PAYLOAD.debian_roots


@pytest.mark.parametrize("unit", PAYLOAD.go_units.values(), ids=lambda unit: unit.name)
def test_go_modules_are_pinned_at_the_version_the_payload_says(unit: GoUnit) -> None:
    modules = (MODULES / unit.name / "go.mod").read_text()
    sums = (MODULES / unit.name / "go.sum").read_text()
    assert re.search(rf" v{re.escape(unit.version)}( // indirect)?$", modules, re.MULTILINE)
    for module, version in re.findall(r"^\s+?(\S+) (v\S+)", modules, re.MULTILINE):
        assert f"{module} {version}" in sums or f"replace\n\t{module} =>" in modules or f"{module} =>" in modules


def test_every_debian_package_is_pinned_by_version_and_hash() -> None:
    assert set(PAYLOAD.packages) == set(PAYLOAD.debian_roots)
    for root, packages in PAYLOAD.packages.items():
        assert set(PAYLOAD.debian_roots[root].include) <= set(packages)
        assert all(re.fullmatch(r"\S+ [0-9a-f]{64}", pin) for pin in packages.values())


def test_lock_files_pin_by_hash_and_name_no_address() -> None:
    for lock in sorted(LOCK.parent.glob("*.txt")):
        text = lock.read_text()
        assert "://" not in text
        names = re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)
        assert names
        assert len(re.findall(r"^[a-z0-9-]+==.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(names)


def test_what_runs_is_what_is_tested() -> None:
    """The lock file for tests pins the same versions as the one for running."""
    pins = [
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", Path(LOCK.parent, name).read_text(), re.MULTILINE))
        for name in ("runtime.txt", "dev.txt")
    ]
    assert pins[0].items() <= pins[1].items()
