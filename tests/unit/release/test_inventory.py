from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.progress import Progress
from falsework.release import inventory
from falsework.release.cache import Cache
from falsework.release.payload import load_payload

PAYLOAD = load_payload()


def test_before_anything_is_built_the_list_says_what_is_pinned(tmp_path: Path) -> None:
    listed = {(item.kind, item.name): item for item in inventory.items(Cache(tmp_path, print), PAYLOAD)}
    etcd = listed["program", "etcd"]
    assert (etcd.version, etcd.digest, etcd.present) == (
        PAYLOAD.go_units["etcd"].version,
        PAYLOAD.pins["etcd"].sha256,
        False,
    )
    assert listed["image", "etcd"].digest == ""
    assert {name for kind, name in listed if kind == "image"} == {*PAYLOAD.images, "falsework", "release"}


@pytest.mark.parametrize("action", [inventory.verify, inventory.prune])
def test_what_is_not_there_cannot_be_checked_or_pruned(tmp_path: Path, action: object) -> None:
    assert callable(action)
    arguments = (Progress(),) if action is inventory.verify else ()
    with pytest.raises(FalseworkError, match="the release is not on this host"):
        action(Cache(tmp_path, print), PAYLOAD, *arguments)


def test_no_mirror_is_made_of_what_no_other_host_would_take(tmp_path: Path) -> None:
    cache = Cache(tmp_path, print)
    parts = {name: pin.sha256 for name, pin in PAYLOAD.pins.items()} | {"debian-os": "0" * 64}
    cache.set_record(inventory._key(PAYLOAD), {"parts": parts, "images": [], "os": ""})
    with pytest.raises(FalseworkError, match="debian-os: not as pinned") as caught:
        inventory.export(cache, PAYLOAD, tmp_path / "mirror", Progress())
    assert "release lock" in (caught.value.fix or "")
    assert not (tmp_path / "mirror").exists()


def test_a_release_is_found_only_if_it_is_whole_and_of_this_falsework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path, print)
    digest = cache.add_bytes(b"etcd")
    for name in ("os", "image-store"):
        with cache.new_tree(name, "0" * 64):
            pass
    trees = {"os_root": str(cache.tree("os", "0" * 64)), "image_store": str(cache.tree("image-store", "0" * 64))}
    record = {"parts": {"etcd": digest}, "images": [], "os": digest, **trees}
    monkeypatch.setattr("falsework.release.own_image.own_key", lambda: "this")
    assert inventory.find(cache, PAYLOAD) is None
    cache.set_record(inventory._key(PAYLOAD), record)
    found = inventory.find(cache, PAYLOAD)
    assert found
    assert found.program("etcd").read_bytes() == b"etcd"
    assert not found.parts["etcd"].pinned
    monkeypatch.setattr("falsework.release.own_image.own_key", lambda: "another")
    assert inventory.find(cache, PAYLOAD) is None
    monkeypatch.setattr("falsework.release.own_image.own_key", lambda: "this")
    cache.set_record(inventory._key(PAYLOAD), record | {"image_store": str(tmp_path / "trees/other")})
    assert inventory.find(cache, PAYLOAD) is None
    cache.set_record(inventory._key(PAYLOAD), record)
    cache.path_of(digest).write_bytes(b"altered")
    assert inventory.find(cache, PAYLOAD) is None
    assert cache.path_of(digest).read_bytes() == b"altered", "looking changes nothing"
