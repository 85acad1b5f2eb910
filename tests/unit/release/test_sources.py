"""Where parts come from, and what happens when they come out wrong. The recipes here are small; the rest is real."""

import dataclasses
import hashlib
import io
from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.progress import Progress, Task
from falsework.release.cache import Cache
from falsework.release.mirror import FolderMirror
from falsework.release.payload import Pin, load_payload
from falsework.release.recipes import Recipe
from falsework.release.sources import Sources, _why_it_differs

RIGHT = b"the pinned content"
PIN = hashlib.sha256(RIGHT).hexdigest()


class Small(Recipe):
    def __init__(self, content: bytes = RIGHT, *, drifts: bool = False) -> None:
        super().__init__("small", "1", "test:small", ("small",))
        self.content = content
        self.drifts = drifts
        self.made: list[bool] = []

    def key(self) -> str:
        return "0" * 64

    def may_differ(self) -> bool:
        return self.drifts

    def make(self, folder: Path, task: Task, *, afresh: bool) -> dict[str, Path]:
        self.made.append(afresh)
        (folder / "small").write_bytes(RIGHT if afresh and self.content == b"spoilt cache" else self.content)
        return {"small": folder / "small"}


class Bench:
    def __init__(self, folder: Path) -> None:
        self.output = io.StringIO()
        self.progress = Progress(self.output)
        self.cache = Cache(folder / "cache", self.progress.say)
        self.payload = dataclasses.replace(load_payload(), pins={"small": Pin(PIN, len(RIGHT))})
        self.cache.root.mkdir()

    def gather(self, recipe: Recipe, **options: object) -> str:
        sources = Sources(self.payload, self.cache, self.progress, **options)  # type: ignore[arg-type]
        sources.recipes = [recipe]
        part = sources.gather()["small"]
        assert part.path.read_bytes()
        assert part.pinned == (part.digest == PIN)
        return part.digest


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_part_is_made_once(bench: Bench) -> None:
    recipe = Small()
    assert bench.gather(recipe) == PIN
    assert bench.gather(recipe) == PIN
    assert recipe.made == [False]


def test_an_altered_part_is_made_again_and_that_is_said(bench: Bench) -> None:
    recipe = Small()
    bench.gather(recipe)
    bench.cache.path_of(PIN).write_bytes(b"the pinned c0ntent")
    assert bench.gather(recipe) == PIN
    assert len(recipe.made) == 2
    assert "small: the cached file had been altered or cut short; it was removed" in bench.output.getvalue()


def test_a_mirror_is_asked_before_anything_is_made(bench: Bench, tmp_path: Path) -> None:
    blobs = tmp_path / "mirror" / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    (blobs / PIN).write_bytes(RIGHT)
    recipe = Small()
    assert bench.gather(recipe, mirror=FolderMirror(tmp_path / "mirror")) == PIN
    assert recipe.made == []


def test_a_mirror_with_wrong_content_is_not_believed(bench: Bench, tmp_path: Path) -> None:
    blobs = tmp_path / "mirror" / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    (blobs / PIN).write_bytes(b"something else")
    recipe = Small()
    assert bench.gather(recipe, mirror=FolderMirror(tmp_path / "mirror")) == PIN
    assert recipe.made == [False]
    assert "the mirror's copy was refused" in bench.output.getvalue()


def test_a_wrong_result_is_made_again_without_caches(bench: Bench) -> None:
    recipe = Small(b"spoilt cache")
    assert bench.gather(recipe) == PIN
    assert recipe.made == [False, True]
    assert (bench.cache.root / "go.distrusted").exists()


def test_a_result_that_stays_wrong_is_refused(bench: Bench) -> None:
    with pytest.raises(FalseworkError, match="the release pins sha256:") as caught:
        bench.gather(Small(b"not reproducible"))
    assert "release lock" in (caught.value.fix or "")
    assert list((bench.cache.root / "work").iterdir()) == []
    assert not (bench.cache.root / "blobs").exists()


def test_newer_debian_packages_are_used_said_and_found_again(bench: Bench) -> None:
    recipe = Small(b"newer", drifts=True)
    digest = bench.gather(recipe)
    assert digest != PIN
    assert "Debian's archive has moved on" in bench.output.getvalue()
    assert bench.gather(recipe) == digest
    assert recipe.made == [False]


def test_locked_refuses_newer_debian_packages(bench: Bench) -> None:
    with pytest.raises(FalseworkError, match="the release pins sha256:"):
        bench.gather(Small(b"newer", drifts=True), locked=True)


def test_repinning_takes_what_comes(bench: Bench) -> None:
    assert bench.gather(Small(b"new version"), repin=True) == hashlib.sha256(b"new version").hexdigest()


def test_two_faults_are_one_error_that_names_both(bench: Bench) -> None:
    class Broken(Small):
        def make(self, folder: Path, task: Task, *, afresh: bool) -> dict[str, Path]:
            raise FalseworkError("no network", fix="plug it in")

    broken, other = Broken(), Broken()
    other.name, other.outputs = "other", ("other",)
    sources = Sources(bench.payload, bench.cache, Progress())
    sources.recipes = [broken, other]
    with pytest.raises(FalseworkError, match=r"small \(and other\) could not be made: no network"):
        sources.gather()


@pytest.mark.parametrize(
    ("pinned", "actual", "reason"),
    [
        ({}, {}, "because Debian's archive has moved on"),
        ({"a": "1 x"}, {"a": "2 y"}, "because Debian's archive has moved on (a 2)"),
        ({"a": "1 x"}, {}, "because Debian's archive has moved on (a gone)"),
        (
            {},
            dict.fromkeys("abcdef", "1 x"),
            "because Debian's archive has moved on (a 1, b 1, c 1, d 1 and 2 more)",
        ),
        ({"a": "1 x"}, {"a": "1 x"}, "although its packages are: this host's mmdebstrap may be another version"),
    ],
)
def test_why_a_root_is_not_the_pinned_one(pinned: dict[str, str], actual: dict[str, str], reason: str) -> None:
    assert _why_it_differs(pinned, actual) == reason
