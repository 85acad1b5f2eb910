"""The graph on its own, with assets that are quick to make."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from asset_samples import START, at, later, snapshot

from falsework.assets import graph as graph_module
from falsework.assets.graph import STATE_FILE, Asset, Files, Given, Graph, Report, State
from falsework.assets.pki import Life
from falsework.errors import FalseworkError, UsageError
from falsework.files import write_file

numbers: Iterator[int] = itertools.count()


def key(name: str = "key", days: float | None = None) -> Asset:
    """Something made by chance: another one every time."""

    def make(given: Given) -> Files:
        return {f"{name}.key": f"{next(numbers)} {given.now.isoformat()}".encode(), f"{name}.pub": b"public"}

    def life(files: Files) -> Life:
        begins = START.fromisoformat(files[f"{name}.key"].split()[1].decode())
        return Life(begins, begins + timedelta(days=days or 0))

    def check(files: Files) -> None:
        if b" " not in files[f"{name}.key"]:
            raise ValueError("no key")

    return Asset(name, make, once=True, life=life if days else None, check=check)


def note(path: str, text: str, *needs: str, editable: bool = False) -> Asset:
    def make(given: Given) -> Files:
        return {
            path: b"\n".join([text.encode(), *(content for name in needs for content in given.files(name).values())])
        }

    return Asset(path, make, {"text": text}, needs, editable=editable)


def summary(path: str = "all.txt") -> Asset:
    def make(given: Given) -> Files:
        return {path: b"".join(content + b"|" for content in given.folder("notes").values())}

    return Asset(path, make, folders=("notes",))


def run(folder: Path, *assets: Asset, days: float = 0, targets: tuple[str, ...] | None = None) -> Report:
    graph = Graph(assets, folder, later(days=days))
    return graph.bring_up_to_date(targets or tuple(graph.assets))


def test_a_second_run_changes_nothing_not_even_a_time(tmp_path: Path) -> None:
    assets = (key(), note("a.txt", "a", "key"))
    assert run(tmp_path, *assets).written == ("a.txt", "key.key", "key.pub")
    before = snapshot(tmp_path)
    assert run(tmp_path, *assets) == Report()
    assert snapshot(tmp_path) == before


def test_a_changed_fact_remakes_only_what_depends_on_it(tmp_path: Path) -> None:
    def assets(text: str) -> tuple[Asset, ...]:
        return key(), note("a.txt", text, "key"), note("b.txt", "b", "a.txt"), note("c.txt", "c", "key")

    run(tmp_path, *assets("one"))
    report = run(tmp_path, *assets("two"))
    assert report.made == {"a.txt": "changed: site: text", "b.txt": "changed: a.txt"}
    assert report.written == ("a.txt", "b.txt")


def test_what_comes_out_the_same_stops_there(tmp_path: Path) -> None:
    def assets(fact: int) -> tuple[Asset, ...]:
        return Asset("same.txt", lambda _: {"same.txt": b"same"}, {"fact": fact}), note("b.txt", "b", "same.txt")

    run(tmp_path, *assets(1))
    report = run(tmp_path, *assets(2))
    assert list(report.made) == ["same.txt"]
    assert report.written == ()


def test_only_targets_and_what_they_need_are_made(tmp_path: Path) -> None:
    report = run(tmp_path, key(), note("a.txt", "a", "key"), note("b.txt", "b"), targets=("a.txt",))
    assert sorted(report.made) == ["a.txt", "key"]


def test_an_expiring_key_is_made_again_with_all_it_is_in(tmp_path: Path) -> None:
    assets = (key("short", days=3), key("long", days=30), note("a.txt", "a", "short"), note("b.txt", "b", "long"))
    run(tmp_path, *assets)
    assert run(tmp_path, *assets, days=1.9).made == {}
    report = run(tmp_path, *assets, days=2.1)
    assert sorted(report.made) == ["a.txt", "short"]
    assert report.made["short"].startswith("expires 2030-01-04")
    expiries = {name: record.expires for name, record in State.load(tmp_path).assets.items()}
    assert expiries["a.txt"] == expiries["short"] == (START + timedelta(days=5.1)).isoformat()


def test_a_missing_key_is_made_again(tmp_path: Path) -> None:
    assets = (key(), note("a.txt", "a", "key"))
    run(tmp_path, *assets)
    (tmp_path / "key.pub").unlink()
    assert run(tmp_path, *assets).made == {"key": "key.pub is gone", "a.txt": "changed: key"}


def test_a_makers_reads_only_what_it_declares(tmp_path: Path) -> None:
    sly = Asset("sly", lambda given: {"sly": given.file("a.txt")})
    with pytest.raises(AssertionError, match="does not declare"):
        run(tmp_path, note("a.txt", "a"), sly)


def test_an_edited_file_is_kept_and_flows_on(tmp_path: Path) -> None:
    assets = (note("notes/a.yaml", "a", editable=True), summary())
    run(tmp_path, *assets)
    (tmp_path / "notes/a.yaml").write_text("mine")
    report = run(tmp_path, *assets)
    assert (tmp_path / "notes/a.yaml").read_text() == "mine"
    assert (tmp_path / "all.txt").read_text() == "mine|"
    assert report.edited == ("notes/a.yaml",)
    assert report.warnings == ()


def test_an_edit_is_told_when_what_it_replaces_changes(tmp_path: Path) -> None:
    run(tmp_path, note("notes/a.yaml", "one", editable=True), summary())
    (tmp_path / "notes/a.yaml").write_text("mine")
    report = run(tmp_path, note("notes/a.yaml", "two", editable=True), summary())
    assert report.warnings == ("notes/a.yaml: changed by hand and kept; what would be in it has changed",)
    assert (tmp_path / "all.txt").read_text() == "mine|"
    assert run(tmp_path, note("notes/a.yaml", "two", editable=True), summary()).warnings == ()


def test_an_edit_that_is_what_would_be_made_is_none(tmp_path: Path) -> None:
    run(tmp_path, note("notes/a.yaml", "one", editable=True))
    (tmp_path / "notes/a.yaml").write_text("two")
    assert run(tmp_path, note("notes/a.yaml", "two", editable=True)).warnings == ()
    assert run(tmp_path, note("notes/a.yaml", "three", editable=True)).written == ("notes/a.yaml",)


def test_a_deleted_file_stays_deleted_and_a_deleted_folder_is_a_fresh_start(tmp_path: Path) -> None:
    def assets(text: str = "a") -> tuple[Asset, ...]:
        return note("notes/a.yaml", text, editable=True), note("notes/b.yaml", "b", editable=True), summary()

    run(tmp_path, *assets())
    (tmp_path / "notes/a.yaml").unlink()
    report = run(tmp_path, *assets())
    assert (tmp_path / "all.txt").read_text() == "b|"
    assert report.edited == ("notes/a.yaml",)
    assert run(tmp_path, *assets("other")).warnings == (
        "notes/a.yaml: deleted by hand and left so; what would be in it has changed",
    )
    (tmp_path / "notes/b.yaml").unlink()
    (tmp_path / "notes").rmdir()
    run(tmp_path, *assets("other"))
    assert (tmp_path / "all.txt").read_text() == "other|b|"


def test_an_added_file_flows_in_and_out_again(tmp_path: Path) -> None:
    assets = (note("notes/a.yaml", "a", editable=True), summary())
    run(tmp_path, *assets)
    (tmp_path / "notes/z.yml").write_text("mine")
    (tmp_path / "notes/.z.yml.swp").write_text("an editor's")
    (tmp_path / "notes/README").write_text("no manifest")
    report = run(tmp_path, *assets)
    assert (tmp_path / "all.txt").read_text() == "a|mine|"
    assert report.edited == ("notes/z.yml",)
    assert report.warnings == ("notes/README: left out; manifests end in .yaml, .yml, .json",)
    (tmp_path / "notes/z.yml").unlink()
    run(tmp_path, *assets)
    assert (tmp_path / "all.txt").read_text() == "a|"


def test_a_key_put_there_by_hand_is_used_whole_or_not_at_all(tmp_path: Path) -> None:
    assets = (key(days=3), note("a.txt", "a", "key"))
    (tmp_path / "key.key").write_text(f"mine {START.isoformat()}")
    with pytest.raises(UsageError, match=r"key\.pub is missing"):
        run(tmp_path, *assets)
    (tmp_path / "key.pub").write_text("mine")
    report = run(tmp_path, *assets)
    assert report.edited == ("key.key", "key.pub")
    assert b"mine" in (tmp_path / "a.txt").read_bytes()
    assert run(tmp_path, *assets, days=2.5).warnings != ()
    assert b"mine" in (tmp_path / "key.key").read_bytes()
    with pytest.raises(UsageError, match=r"expired on 2030-01-04"):
        run(tmp_path, *assets, days=4)


def test_a_replaced_key_is_used_and_a_damaged_one_refused(tmp_path: Path) -> None:
    assets = (key(), note("a.txt", "a", "key"))
    run(tmp_path, *assets)
    (tmp_path / "key.key").write_text("my own")
    assert run(tmp_path, *assets).made == {"a.txt": "changed: key"}
    (tmp_path / "key.key").write_text("broken")
    with pytest.raises(UsageError, match="cannot be used: no key"):
        run(tmp_path, *assets)
    assert (tmp_path / "key.key").read_text() == "broken"


def test_what_is_no_longer_made_goes_unless_it_was_edited(tmp_path: Path) -> None:
    both = (note("gone/a.txt", "a"), note("gone/b.txt", "b"), note("c.txt", "c"))
    run(tmp_path, *both)
    (tmp_path / "gone/b.txt").write_text("mine")
    report = run(tmp_path, both[2])
    assert report.removed == ("gone/a.txt",)
    assert report.warnings == ("gone/b.txt: no longer made, but changed by hand, so it is kept",)
    assert (tmp_path / "gone/b.txt").exists()


def test_a_preview_touches_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "not-there"
    report = Graph((key(),), folder, at(START)).preview(("key",))
    assert report.written == ("key.key", "key.pub")
    assert not folder.exists()


def test_files_and_folders_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "assets"
    run(folder, note("deep/er/a.txt", "a"))
    assert {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*") if path.is_file()} == {"0o600"}
    assert {oct(path.stat().st_mode & 0o777) for path in (folder, folder / "deep", folder / "deep/er")} == {"0o700"}


def test_a_state_file_that_cannot_be_read_is_an_error_and_a_lost_one_is_not(tmp_path: Path) -> None:
    assets = (key(), note("a.txt", "a", "key"))
    run(tmp_path, *assets)
    before = (tmp_path / "key.key").read_bytes()
    (tmp_path / STATE_FILE).write_text("{")
    with pytest.raises(FalseworkError, match="cannot be read"):
        run(tmp_path, *assets)
    (tmp_path / STATE_FILE).unlink()
    report = run(tmp_path, *assets)
    assert (tmp_path / "key.key").read_bytes() == before
    assert report.written == ()


class Killed(BaseException):
    """Stands for a kill: nothing catches it, so nothing tidies up."""


@pytest.mark.parametrize("survived", range(8))
def test_a_kill_at_any_write_leaves_old_or_new_and_the_next_run_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    def assets(text: str) -> tuple[Asset, ...]:
        return (
            key("key", days=3),
            note("notes/a.yaml", text, "key", editable=True),
            note("notes/b.yaml", text, "key", editable=True),
            summary(),
        )

    run(tmp_path, *assets("one"))
    old = {path: found[0] for path, found in snapshot(tmp_path).items()}
    writes = itertools.count()

    def write_until_killed(path: Path, content: bytes, mode: int) -> None:
        if next(writes) >= survived:
            (path.parent / f".{path.name}.abcdefgh").write_bytes(content[: len(content) // 2])
            raise Killed
        write_file(path, content, mode)

    with monkeypatch.context() as patch:
        patch.setattr(graph_module, "write_file", write_until_killed)
        patch.setattr(graph_module, "_WRITERS", 1)
        with contextlib.suppress(Killed):
            run(tmp_path, *assets("two"), days=2.5)
    drafts = {path for path in snapshot(tmp_path) if path not in old}
    assert all(Path(path).name.startswith(".") for path in drafts)

    report = run(tmp_path, *assets("two"), days=2.5)
    assert report.edited == report.warnings == ()
    assert set(snapshot(tmp_path)) == set(old), "drafts are cleared away"
    key_content = (tmp_path / "key.key").read_bytes()
    for name in ("a", "b"):
        assert (tmp_path / f"notes/{name}.yaml").read_bytes() == b"two\n" + key_content + b"\npublic"
    assert key_content in (tmp_path / "all.txt").read_bytes()
    assert run(tmp_path, *assets("two"), days=2.5) == Report()


def test_what_a_killed_first_run_left_and_nothing_makes_any_more_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def killed_at_b(path: Path, content: bytes, mode: int) -> None:
        if path.name == "b.txt":
            raise Killed
        write_file(path, content, mode)

    with monkeypatch.context() as patch:
        patch.setattr(graph_module, "write_file", killed_at_b)
        patch.setattr(graph_module, "_WRITERS", 1)
        with pytest.raises(Killed):
            run(tmp_path, note("a.txt", "a"), note("b.txt", "b"))
    assert (tmp_path / "a.txt").exists()
    report = run(tmp_path, note("b.txt", "b"))
    assert report.removed == ("a.txt",)
    assert report.written == ("b.txt",)
    assert not (tmp_path / "a.txt").exists()
