from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.errors import FalseworkError
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal, Thing


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "lab" / "journal")


def test_what_was_noted_stands_in_order_until_it_is_removed(journal: Journal) -> None:
    journal.creating("netns", "a")
    journal.creating("netns", "b")
    journal.creating("sysctl", "kernel.panic", value="0")
    journal.removed(Thing("netns", "a"))
    assert journal.standing() == [Thing("netns", "b"), Thing("sysctl", "kernel.panic")]
    assert journal.standing()[1].detail == {"value": "0"}


def test_the_first_note_of_a_thing_counts(journal: Journal) -> None:
    """A second run must not note a changed value as the one to go back to."""
    journal.creating("sysctl", "kernel.panic", value="0")
    journal.creating("sysctl", "kernel.panic", value="10")
    assert [thing.detail for thing in journal.standing()] == [{"value": "0"}]


def test_a_thing_can_be_made_again_after_its_removal(journal: Journal) -> None:
    journal.creating("netns", "a")
    journal.removed(Thing("netns", "a"))
    journal.creating("netns", "a")
    assert journal.standing() == [Thing("netns", "a")]


@settings(deadline=None)
@given(cut=st.integers(min_value=0, max_value=400))
def test_a_line_cut_off_anywhere_is_as_if_it_had_not_been_begun(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    journal = Journal(tmp_path_factory.mktemp("lab") / "journal")
    names = [f"machine-{number}" for number in range(5)]
    for name in names:
        journal.creating("machine", name)
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")
    assert [thing.name for thing in journal.standing()] == names[:complete]
    journal.creating("machine", "next")
    assert [thing.name for thing in journal.standing()] == [*names[:complete], "next"]


def test_a_damaged_journal_is_said_to_be_damaged(journal: Journal) -> None:
    journal.creating("netns", "a")
    journal.path.write_text("garbage\n" + journal.path.read_text())
    with pytest.raises(FalseworkError, match="is damaged"):
        journal.standing()


def test_the_journal_and_its_folder_are_closed_to_others(journal: Journal) -> None:
    journal.creating("netns", "a")
    assert journal.path.parent.stat().st_mode & 0o077 == 0


def test_a_lab_is_known_by_its_folder(tmp_path: Path) -> None:
    one, other = Lab.of(tmp_path / "one"), Lab.of(tmp_path / "other")
    assert one.id != other.id
    assert Lab.of(tmp_path / "x" / ".." / "one") == one
    assert one.root.name == one.id
    assert one.lock.parent == one.root.parent


def test_the_state_folder_can_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALSEWORK_STATE", str(tmp_path))
    assert Lab.of(tmp_path / "site").root.parent == tmp_path
