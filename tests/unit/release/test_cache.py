import contextlib
import os
from pathlib import Path

import pytest

from falsework.release.cache import Cache, DigestMismatchError


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cache(tmp_path: Path, said: list[str]) -> Cache:
    return Cache(tmp_path / "cache", said.append)


def test_a_blob_is_found_by_its_content(cache: Cache) -> None:
    digest = cache.add_bytes(b"content")
    path = cache.find(digest, "thing")
    assert path is not None
    assert path.read_bytes() == b"content"


def test_another_content_than_expected_is_not_taken(cache: Cache) -> None:
    with cache.work("thing") as folder:
        (folder / "draft").write_bytes(b"other")
        with pytest.raises(DigestMismatchError):
            cache.add(folder / "draft", expected="0" * 64)
    assert not (cache.root / "blobs").exists()


@pytest.mark.parametrize("damage", [b"altered", b"", b"content and more"])
def test_a_damaged_blob_is_removed_and_reported(cache: Cache, said: list[str], damage: bytes) -> None:
    digest = cache.add_bytes(b"content")
    cache.path_of(digest).write_bytes(damage)
    assert cache.find(digest, "thing") is None
    assert not cache.path_of(digest).exists()
    assert said == ["thing: the cached file had been altered or cut short; it was removed"]


def test_damage_that_keeps_size_and_modification_time_is_noticed(cache: Cache) -> None:
    digest = cache.add_bytes(b"content")
    path = cache.path_of(digest)
    before = path.stat()
    path.write_bytes(b"CONTENT")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.find(digest, "thing") is None


def test_an_unharmed_blob_whose_note_is_lost_is_read_again_and_kept(cache: Cache, said: list[str]) -> None:
    digest = cache.add_bytes(b"content")
    for seal in cache.root.rglob("*.seal"):
        seal.write_text("not json")
    assert cache.find(digest, "thing") is not None
    assert said == []


def test_a_tree_appears_only_when_it_is_complete(cache: Cache) -> None:
    key = "k" * 64
    with contextlib.suppress(RuntimeError), cache.new_tree("os", key) as tree:
        (tree / "half").touch()
        raise RuntimeError("killed")
    assert not cache.has_tree("os", key)
    with cache.new_tree("os", key) as tree:
        (tree / "whole").touch()
    assert cache.has_tree("os", key)
    assert [path.name for path in cache.tree("os", key).iterdir()] == ["whole"]
    assert cache.trees_named("os") == [cache.tree("os", key)]


def test_what_a_killed_run_left_is_removed_and_reported(cache: Cache, said: list[str]) -> None:
    (cache.root / "work" / "etcd.abc").mkdir(parents=True)
    (cache.root / "work" / "etcd.abc" / "draft").touch()
    with cache.exclusive():
        assert list((cache.root / "work").iterdir()) == []
    assert said == ["an earlier run was interrupted while working on etcd; its drafts were removed"]


def test_distrusted_go_caches_are_gone_in_the_next_run(cache: Cache, said: list[str]) -> None:
    (cache.go_caches() / "build").mkdir(parents=True)
    cache.distrust_go_caches()
    with cache.exclusive():
        assert not cache.go_caches().exists()
    with cache.exclusive():
        pass
    assert len(said) == 1


def test_a_broken_record_counts_as_none(cache: Cache) -> None:
    cache.set_record("key", {"digest": "x"})
    assert cache.record("key") == {"digest": "x"}
    (cache.root / "records" / "key.json").write_text('{"digest": ')
    assert cache.record("key") is None
