"""Falsework's own image: Debian's Python, the locked dependencies, and the package of this checkout.

Three layers, from the one that changes least to the one that changes most. Python's compiled files are made
here, once: no container starts by compiling the standard library.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from falsework import __version__
from falsework.errors import FalseworkError
from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.images import assembled, certificate_entries, common_entries
from falsework.release.mirror import Mirror, fetch_into
from falsework.release.oci import Image
from falsework.release.recipes import Part, Report, key_of, unpack_tar
from falsework.release.tarball import Entry, file_entry, folder_entry
from falsework.release.wheels import download_wheels
from falsework.sandbox import run_in_root

PYTHON_ROOT = "debian-python"
PACKAGE = Path(__file__).parents[1]
LOCK = Path(__file__).parents[3] / "locks" / "runtime.txt"
WHEEL_LIST = "wheels.json"

_PYTHON = "3.11"
_LIBRARY = f"usr/lib/python{_PYTHON}"
_PACKAGES = f"usr/local/lib/python{_PYTHON}/dist-packages"
_PLATFORMS = ("manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def own_image(cache: Cache, python: Part, os_root: Part, epoch: int, mirror: Mirror | None, report: Report) -> Image:
    def make() -> Image:
        layers = [
            python.digest,
            _dependency_layer(cache, python, os_root, epoch, mirror, report),
            _package_layer(cache, _python_tree(cache, python), epoch),
        ]
        command = ("/usr/bin/python3", "-m", "falsework")
        # Unwritable roots are the rule in the cluster: nobody should try to write compiled files.
        env = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
        return oci.add_image(cache, "falsework", __version__, layers, entrypoint=command, env=env)

    inputs = [python.digest, os_root.digest, *_own_inputs(), epoch]
    return assembled(cache, "falsework", __version__, inputs, __file__, make)


def own_key() -> str:
    """Stands for this Falsework, to the last line of its code."""
    return key_of(_own_inputs())


def _own_inputs() -> list[object]:
    return [_lock_text(), {str(path.relative_to(PACKAGE)): path.read_text() for path in _source_files()}]


def wheels(cache: Cache, mirror: Mirror | None, report: Report) -> dict[str, str]:
    """The locked dependencies for the image's Python: file name → digest, all in the cache."""
    known = known_wheels(cache)
    if not known or not all(cache.find(digest, name) for name, digest in known.items()):
        known = (_mirrored_wheels(cache, mirror) if mirror else None) or _downloaded_wheels(cache, report)
        cache.set_record(_wheels_key(), known)
    return known


def known_wheels(cache: Cache) -> dict[str, str]:
    """What an earlier run noted of them; empty if none did."""
    known: dict[str, str] | None = cache.record(_wheels_key())
    return known or {}


def _wheels_key() -> str:
    return key_of(["wheels", _lock_text(), _PYTHON, _PLATFORMS])


def _mirrored_wheels(cache: Cache, mirror: Mirror) -> dict[str, str] | None:
    with cache.work("wheels") as folder:
        if not mirror.fetch(WHEEL_LIST, folder / WHEEL_LIST):
            return None
        listed: dict[str, str] = json.loads((folder / WHEEL_LIST).read_text())
    # The list is the mirror's word; the hashes in our lock file decide.
    locked = _lock_text()
    if not listed or not all(f"sha256:{digest}" in locked for digest in listed.values()):
        return None
    found = (cache.find(digest, name) or fetch_into(cache, mirror, digest, name) for name, digest in listed.items())
    return listed if all(found) else None


def _downloaded_wheels(cache: Cache, report: Report) -> dict[str, str]:
    for_the_image = ("--implementation", "cp", "--python-version", _PYTHON)
    platforms = (f"--platform={platform}" for platform in _PLATFORMS)
    with cache.work("wheels") as folder:
        found = download_wheels(LOCK, folder, report, *for_the_image, *platforms)
        return {wheel.name: cache.add(wheel) for wheel in found}


def _python_tree(cache: Cache, python: Part) -> Path:
    """Debian's Python, unpacked, its library compiled."""
    key = key_of([python.digest, Path(__file__).read_text()])
    if not cache.has_tree(PYTHON_ROOT, key):
        with cache.new_tree(PYTHON_ROOT, key) as tree:
            unpack_tar(python.path, tree)
            _compile(tree, {}, f"/{_LIBRARY}", f"/{_LIBRARY}")
    return cache.tree(PYTHON_ROOT, key)


def _dependency_layer(
    cache: Cache, python: Part, os_root: Part, epoch: int, mirror: Mirror | None, report: Report
) -> str:
    tree = _python_tree(cache, python)
    with cache.work("dependencies") as folder:
        installed = folder / "packages"
        installed.mkdir()
        for name, digest in wheels(cache, mirror, report).items():
            shutil.unpack_archive(cache.path_of(digest), installed, "zip")
            assert name.endswith(".whl")
        _compile(tree, {installed: "/work"}, "/work", f"/{_PACKAGES}")
        return oci.add_layer(
            cache,
            [
                *common_entries(epoch),
                *certificate_entries(os_root.path, epoch),
                *_tree_entries(tree / _LIBRARY, _LIBRARY, epoch, only="__pycache__"),
                *_tree_entries(installed, _PACKAGES, epoch),
            ],
        )


def _package_layer(cache: Cache, tree: Path, epoch: int) -> str:
    with cache.work("package") as folder:
        copy = folder / "falsework"
        for path in _source_files():
            target = copy / path.relative_to(PACKAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        _compile(tree, {folder: "/work"}, "/work", f"/{_PACKAGES}")
        return oci.add_layer(cache, _tree_entries(folder, _PACKAGES, epoch))


def _source_files() -> list[Path]:
    """The package's files, without compiled ones."""
    return sorted(path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _compile(tree: Path, binds: dict[Path, str], folder: str, known_as: str) -> None:
    """Compile a folder with the image's own Python, into files that are valid whatever the times on disk say."""
    run_in_root(
        tree,
        (
            *(f"/usr/bin/python{_PYTHON}", "-m", "compileall", "-q", "-j", "1"),
            *("--invalidation-mode", "unchecked-hash", "-s", folder, "-p", known_as, folder),
        ),
        binds=binds,
        env={"PYTHONHASHSEED": "0"},
    )


def _tree_entries(folder: Path, place: str, epoch: int, only: str = "") -> Iterator[Entry]:
    parent = Path(place)
    for above in reversed(parent.parents[:-1]):
        yield folder_entry(str(above), epoch)
    yield folder_entry(place, epoch)
    for path in sorted(folder.rglob("*")):
        name = f"{place}/{path.relative_to(folder)}"
        if path.is_dir():
            yield folder_entry(name, epoch)
        elif not only or only in path.parts:
            yield file_entry(name, path, epoch)


def _lock_text() -> str:
    try:
        return LOCK.read_text()
    except FileNotFoundError:
        raise FalseworkError(
            "the release is built from a checkout of Falsework, and this is an installed one",
            fix="run ./falsework release build in a checkout",
        ) from None
