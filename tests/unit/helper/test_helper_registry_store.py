"""The registry's storage tree, made of a small image."""

from __future__ import annotations

from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.helper.registry_store import add_to_store, registry_store
from falsework.release import oci
from falsework.release.cache import Cache


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", pytest.fail)


def image(cache: Cache, name: str, layers: list[bytes]) -> oci.Image:
    return oci.add_image(cache, name, "1.0", [cache.add_bytes(layer) for layer in layers])


def test_the_tree_is_as_the_registry_wants_it(cache: Cache) -> None:
    made = image(cache, "etcd", [b"one", b"two"])
    home = registry_store(cache, [made]) / "docker/registry/v2"
    for digest in oci.blobs_of(cache, made):
        data = home / "blobs/sha256" / digest[:2] / digest / "data"
        assert data.samefile(cache.path_of(digest))
    repository = home / "repositories/release/etcd"
    for place in (f"revisions/sha256/{made.digest}", "tags/1.0/current", f"tags/1.0/index/sha256/{made.digest}"):
        assert (repository / "_manifests" / place / "link").read_text() == f"sha256:{made.digest}"
    links = {path.parent.name for path in repository.glob("_layers/sha256/*/link")}
    assert links == set(oci.blobs_of(cache, made)[1:])


def test_the_second_time_nothing_is_done(cache: Cache) -> None:
    images = [image(cache, "etcd", [b"one"]), image(cache, "pause", [b"one"])]
    store = registry_store(cache, images)
    changed = store.stat().st_ctime_ns
    assert registry_store(cache, reversed(images)) == store
    assert store.stat().st_ctime_ns == changed
    assert registry_store(cache, images[:1]) != store


def test_what_another_has_made_meanwhile_is_not_made_again(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper may be using it."""
    made = [image(cache, "etcd", [b"one"])]
    store = registry_store(cache, made)
    before = store.stat().st_ino
    looks = iter([False, True])
    monkeypatch.setattr(cache, "has_tree", lambda *_: next(looks))
    assert registry_store(cache, made) == store
    assert store.stat().st_ino == before


def test_a_linked_blob_need_not_be_read_again(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    made = image(cache, "etcd", [b"one"])
    registry_store(cache, [made])
    monkeypatch.setattr("falsework.release.cache.sha256_of", lambda _: pytest.fail("read again"))
    for digest in oci.blobs_of(cache, made):
        assert cache.find(digest, "etcd")


def test_a_missing_blob_is_told(cache: Cache) -> None:
    made = image(cache, "etcd", [b"one"])
    cache.discard(oci.blobs_of(cache, made)[1])
    with pytest.raises(FalseworkError, match="missing from the cache"):
        registry_store(cache, [made])
    assert cache.trees_named() == []


def test_a_store_in_use_takes_more_images_and_keeps_what_it_has(cache: Cache) -> None:
    first, more = image(cache, "etcd", [b"one"]), image(cache, "conformance/agnhost", [b"one", b"two"])
    store = registry_store(cache, [first])
    tag = store / "docker/registry/v2/repositories/release/etcd/_manifests/tags/1.0/current/link"
    before = tag.stat().st_mtime_ns
    add_to_store(cache, store, [first, more])
    repositories = store / "docker/registry/v2/repositories/release"
    added = repositories / "conformance/agnhost/_manifests/tags/1.0/current/link"
    assert added.read_text() == f"sha256:{more.digest}"
    assert tag.stat().st_mtime_ns == before
