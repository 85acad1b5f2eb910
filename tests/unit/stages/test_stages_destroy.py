"""Destroying: the last made first, as far as it goes, and again after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_samples import lab_in

from falsework.errors import FalseworkError
from falsework.files import only_one
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal, Thing
from falsework.lab.marker import mark, read_marker
from falsework.stages.destroy import REMOVERS, NotAllRemovedError, _mounts_below, destroy, standing


class Killed(BaseException):
    """What a kill is to the code it hits: nothing more of it runs."""


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = lab_in(tmp_path)
    mark(lab)
    journal = Journal(lab.journal)
    for name in ("one", "two", "three"):
        journal.creating("netns", name)
    (lab.root / "disk").mkdir()
    (lab.root / "disk/file").touch()
    return lab


def test_the_last_made_goes_first_and_the_folder_last(lab: Lab) -> None:
    gone: list[str] = []

    def remove(at: Lab, thing: Thing) -> None:
        assert at.root.is_dir()
        gone.append(thing.name)

    lab.lock.touch()
    removed = destroy(lab, print, {"netns": remove})
    assert gone == ["three", "two", "one"]
    assert not lab.root.exists()
    assert not lab.lock.exists()
    assert str(removed) == "3 × netns, the lab's folder"
    assert str(destroy(lab, print, {})) == "nothing", "and again"


def test_what_cannot_be_removed_keeps_nothing_else_from_going(lab: Lab) -> None:
    gone: list[str] = []
    broken = {"two"}

    def remove(_: Lab, thing: Thing) -> None:
        if thing.name in broken:
            raise FalseworkError("it is busy", cause="somebody uses it")
        gone.append(thing.name)

    Journal(lab.journal).creating("dragon", "smaug")
    said: list[str] = []
    with pytest.raises(NotAllRemovedError) as caught:
        destroy(lab, said.append, {"netns": remove})
    assert gone == ["three", "one"]
    assert "netns two: it is busy (somebody uses it)" in caught.value.what
    assert "dragon smaug: this Falsework does not know how" in caught.value.what
    assert len(said) == 2
    assert standing(lab) == [Thing("dragon", "smaug"), Thing("netns", "two")]
    assert (lab.root / "disk/file").exists(), "the evidence stays"
    broken.clear()
    destroy(lab, print, {"netns": remove, "dragon": remove})
    assert gone == ["three", "one", "smaug", "two"]
    assert not lab.root.exists()


def test_after_a_kill_in_the_middle_the_next_goes_on(lab: Lab) -> None:
    gone: list[str] = []

    def remove(_: Lab, thing: Thing) -> None:
        gone.append(thing.name)
        if gone == ["three", "two"]:
            raise Killed

    with pytest.raises(Killed):
        destroy(lab, print, {"netns": remove})
    destroy(lab, print, {"netns": remove})
    assert gone == ["three", "two", "two", "one"], "the one under way is done again; those before are not"
    assert not lab.root.exists()


def test_killed_while_the_folder_goes_it_is_no_lab_any_more(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("falsework.stages.destroy.remove_tree", killed)
        with pytest.raises(Killed):
            destroy(lab, print, {"netns": lambda *_: None})
    assert read_marker(lab.root) is None
    mark(lab)
    assert read_marker(lab.root) is None, "what is left does not become a lab again"
    destroy(lab, print, {})
    assert not lab.root.exists()


def test_a_folder_goes_whether_or_not_it_is_there(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "full/of").mkdir(parents=True)
    for _ in range(2):
        REMOVERS["folder"](lab, Thing("folder", str(tmp_path / "full")))
    assert not (tmp_path / "full").exists()


def test_what_is_mounted_below_a_folder_is_seen(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    inside = tmp_path / "lab x"
    escaped = str(inside).replace(" ", "\\040")
    table.write_text(f"1 2 0:1 / {escaped}/disk rw - ext4 /dev/sda rw\n3 2 0:2 / {escaped}y rw - tmpfs tmpfs rw\n")
    assert _mounts_below(inside, table) == [inside / "disk"]


def test_the_lock_goes_while_it_is_held(lab: Lab) -> None:
    with only_one(lab.lock, print):
        destroy(lab, print, {"netns": lambda *_: None})
        assert not lab.lock.exists()
