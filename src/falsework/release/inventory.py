"""What the release consists of on this host: a list of it, a check of it, a copy of it."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError
from falsework.files import CHUNK, new_file, remove_tree, write_file
from falsework.progress import Progress
from falsework.release import imagestore, oci, osimage, own_image
from falsework.release.cache import Cache
from falsework.release.mirror import BLOBS
from falsework.release.oci import Image
from falsework.release.payload import Payload
from falsework.release.recipes import Part, key_of


@dataclass(frozen=True)
class Release:
    """Everything of the release, on this host's disk and checked."""

    version: str
    parts: dict[str, Part]
    images: dict[str, Image]
    os_digest: str
    os_root: Path
    """The OS image unpacked: a read-only lower layer for machines."""
    image_store: Path

    def program(self, name: str) -> Path:
        return self.parts[name].path

    def install(self, name: str, folder: Path) -> Path:
        """A program of the release in `folder`, ready to run; one that is there already stays."""
        return self.parts[name].install(folder)

    def seed_images(self, target: Path) -> imagestore.Seeded:
        """Give a machine's containerd folder all the images of the release."""
        return imagestore.seed(self.image_store, target)


@dataclass(frozen=True)
class Item:
    """A line of the inventory. `digest` is empty for what is put together on the host and has not been yet."""

    name: str
    kind: str
    version: str
    digest: str
    size: int
    source: str
    present: bool


def note(cache: Cache, payload: Payload, release: Release) -> None:
    """Keep what was put together, so that it can be listed, checked and copied without doing it again."""
    cache.set_record(
        _key(payload),
        {
            "parts": {name: part.digest for name, part in release.parts.items()},
            "images": [asdict(image) for image in release.images.values()],
            "os": release.os_digest,
            "os_root": str(release.os_root),
            "image_store": str(release.image_store),
        },
    )


def _key(payload: Payload) -> str:
    """What another Falsework put together has that one's code in its images, and is not ours."""
    pins = {name: pin.sha256 for name, pin in payload.pins.items()}
    return key_of(["inventory", payload.version, pins, own_image.own_key()])


def find(cache: Cache, payload: Payload) -> Release | None:
    """The release, if all of it is here and nobody has written to its files since they were checked."""
    record = cache.record(_key(payload))
    if record is None:
        return None
    trees = [Path(record["os_root"]), Path(record["image_store"])]
    if not all(tree in cache.trees_named() for tree in trees) or not all(
        map(cache.is_untouched, _blobs(cache, record))
    ):
        return None
    described = {name: (version, source) for name, _, version, source in _described(payload)}
    parts = {
        name: Part(name, *described[name], digest, cache.path_of(digest), digest == payload.pins[name].sha256)
        for name, digest in record["parts"].items()
    }
    images = {entry["name"]: Image(**entry) for entry in record["images"]}
    return Release(payload.version, parts, images, record["os"], *trees)


def items(cache: Cache, payload: Payload) -> list[Item]:
    """Everything in the release, whether or not it is on this host yet."""
    record = cache.record(_key(payload)) or {"parts": {}, "images": [], "os": ""}
    listed = list(_parts(cache, payload, record["parts"]))
    built = {entry["name"]: Image(**entry) for entry in record["images"]}
    for name in (*payload.images, "falsework", "release"):
        image = built.get(name)
        version = image.version if image else payload.images[name].version if name in payload.images else ""
        digest, size = (image.digest, image.size) if image else ("", 0)
        listed.append(Item(name, "image", version, digest, size, "put together here", _is_there(cache, digest)))
    os_size = cache.path_of(record["os"]).stat().st_size if _is_there(cache, record["os"]) else 0
    listed.append(
        Item("os", "os", payload.version, record["os"], os_size, "put together here", _is_there(cache, record["os"]))
    )
    return listed


def _described(payload: Payload) -> list[tuple[str, str, str, str]]:
    """Name, kind, version and source of every part."""
    return [
        *((name, "program", unit.version, unit.source) for unit in payload.go_units.values() for name in unit.binaries),
        *((program.name, "program", program.version, program.source) for program in payload.c_programs.values()),
        *((root.name, "debian", root.suite, root.source) for root in payload.debian_roots.values()),
    ]


def _parts(cache: Cache, payload: Payload, in_use: dict[str, str]) -> Iterator[Item]:
    for name, kind, version, source in _described(payload):
        pin = payload.pins[name]
        digest = in_use.get(name, pin.sha256)
        size = pin.size if digest == pin.sha256 else cache.path_of(digest).stat().st_size
        yield Item(name, kind, version, digest, size, source, _is_there(cache, digest))


def _is_there(cache: Cache, digest: str) -> bool:
    return bool(digest) and cache.path_of(digest).is_file()


def verify(cache: Cache, payload: Payload, progress: Progress) -> list[str]:
    """Read everything again and compare it with what it should be; remove what is not, and say what that was."""
    record = _require(cache, payload)
    blobs = _blobs(cache, record)
    faults = []
    with progress.task("files"), ThreadPoolExecutor() as pool:
        for (digest, name), fault in zip(blobs.items(), pool.map(cache.check, blobs), strict=True):
            if fault:
                cache.discard(digest)
                faults.append(f"{name} (sha256:{digest}): {fault}")
    for title, tree, differences in (
        ("OS image", Path(record["os_root"]), lambda tree: osimage.differences(cache.path_of(record["os"]), tree)),
        ("image store", Path(record["image_store"]), imagestore.differences),
    ):
        with progress.task(title):
            if wrong := differences(tree):
                cache.drop_tree_at(tree)
                faults.append(f"{title} in {tree}: {len(wrong)} differences, the first at {wrong[0]}")
    return faults


def export(cache: Cache, payload: Payload, target: Path, progress: Progress) -> int:
    """Copy what another host cannot put together itself; return the bytes copied."""
    record = _require(cache, payload)
    if newer := [name for name, digest in record["parts"].items() if digest != payload.pins[name].sha256]:
        raise FalseworkError(
            f"{', '.join(newer)}: not as pinned, so no host with this checkout would take it from a mirror",
            cause="Debian's archive has moved on since the release was pinned",
            fix="run `falsework release lock`, commit payload.lock.json, build and export again",
        )
    wheels = own_image.wheels(cache, None, progress.say)
    names = {digest: name for name, digest in [*record["parts"].items(), *wheels.items()]}
    copied = 0
    for digest, name in names.items():
        place = target / BLOBS / digest
        if place.is_file() and place.stat().st_size == cache.path_of(digest).stat().st_size:
            continue
        source = cache.find(digest, name)
        if source is None:
            raise _incomplete(f"{name} is missing from the cache")
        with source.open("rb") as content, new_file(place) as file:
            shutil.copyfileobj(content, file, CHUNK)
        copied += place.stat().st_size
    for name, digest in wheels.items():
        wheel = target / "wheels" / name
        wheel.parent.mkdir(exist_ok=True)
        shutil.copyfile(cache.path_of(digest), wheel)
    write_file(target / own_image.WHEEL_LIST, json.dumps(wheels, indent=1, sort_keys=True).encode())
    return copied


def prune(cache: Cache, payload: Payload) -> list[Path]:
    """Remove what this release does not consist of, and Go's caches; return the trees that had to be kept."""
    record = _require(cache, payload)
    # Without the wheels, Falsework's own image could not be put together again without the network.
    wanted = {*_blobs(cache, record), *own_image.known_wheels(cache).values()}
    for digest in cache.blobs():
        if digest not in wanted:
            cache.discard(digest)
    mounted = _mounted()
    kept = []
    for tree in cache.trees_named():
        if str(tree) in (record["os_root"], record["image_store"]):
            continue
        if str(tree) in mounted:
            kept.append(tree)
        else:
            cache.drop_tree_at(tree)
    remove_tree(cache.go_caches())
    return kept


def _mounted() -> str:
    """What is mounted from where, in every mount namespace on the host."""
    tables = []
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            tables.append(path.read_text())
    return "".join(tables)


def _require(cache: Cache, payload: Payload) -> dict[str, Any]:
    record: dict[str, Any] | None = cache.record(_key(payload))
    if record is None:
        raise _incomplete(f"the release is not on this host (looked in {cache.root})")
    return record


def _incomplete(what: str) -> FalseworkError:
    return FalseworkError(what, fix="run `falsework release build`")


def _blobs(cache: Cache, record: dict[str, Any]) -> dict[str, str]:
    """Digest → name of every file the release consists of."""
    blobs = {digest: name for name, digest in record["parts"].items()} | {record["os"]: "os"}
    for image in (Image(**entry) for entry in record["images"]):
        blobs[image.digest] = image.name
        if _is_there(cache, image.digest):
            blobs |= dict.fromkeys(oci.blobs_of(cache, image), f"image {image.name}")
    return blobs
