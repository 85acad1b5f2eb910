"""containerd's store with the release's images in it, unpacked once per host.

A machine's store is seeded from it with hard links: containerd never changes an image's files in place, so
all machines can share them. Only the databases are real copies.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.files import sha256_of
from falsework.process import daemon, run
from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.oci import Image
from falsework.release.recipes import Part, key_of

NAME = "image-store"
NAMESPACE = "k8s.io"

Command = tuple[str | Path, ...]

_SUMS = "sums.json"
_KEPT = 3
"""Older stores: checkouts that take turns would otherwise remove each other's. They share all but a few files."""

_CONFIG = """\
version = 3
root = "{root}"
state = "{state}"
# Importing needs content, snapshots and the transfer service; nothing that serves pods.
disabled_plugins = [
  "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
  "io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.podsandbox.controller.v1.podsandbox",
]
[grpc]
address = "{socket}"
[ttrpc]
address = "{socket}.ttrpc"
"""


def image_store(cache: Cache, parts: dict[str, Part], images: Iterable[Image]) -> Path:
    """The folder to seed machines from. Of an older store, what has not changed is taken over as it is."""
    listed = sorted(images, key=lambda image: image.name)
    key = key_of([NAME, [image.pinned for image in listed], parts["containerd"].digest, Path(__file__).read_text()])
    if not cache.has_tree(NAME, key):
        older = sorted(cache.trees_named(NAME), key=lambda tree: tree.stat().st_mtime)
        with cache.new_tree(NAME, key) as tree, cache.work("import") as folder:
            if older:
                seed(older[-1], tree)
            _import(cache, parts, listed, tree, folder)
            (tree / _SUMS).write_text(json.dumps(_sums(tree)))
        for tree in older[:-_KEPT]:
            # Machines hold links of their own to its files: nothing of theirs goes with it.
            cache.drop_tree_at(tree)
    return cache.tree(NAME, key)


def _import(cache: Cache, parts: dict[str, Part], images: list[Image], root: Path, folder: Path) -> None:
    with opened(parts, root, folder) as ctr:
        present = set(run((*ctr, "images", "list", "--quiet")).output.split())
        wanted = {name for image in images for name in (image.tagged, image.pinned)}
        if stale := present - wanted:
            run((*ctr, "images", "remove", "--sync", *sorted(stale)))
        new = [image for image in images if image.pinned not in present]
        if new:
            add_images(cache, new, ctr, folder)
        for image in new:
            run((*ctr, "images", "tag", "--force", image.tagged, image.pinned))


@contextlib.contextmanager
def opened(parts: dict[str, Part], root: Path, folder: Path) -> Iterator[Command]:
    """containerd at work on the store in `root`, as long as the block lasts; what it needs besides is in `folder`.
    Gives the words that begin a `ctr` command to it."""
    programs = folder / "bin"
    for name in ("containerd", "ctr"):
        parts[name].install(programs)
    socket = folder / "socket"
    config = folder / "config.toml"
    config.write_text(_CONFIG.format(root=root, state=folder / "state", socket=socket))
    # Layers are unpacked through mounts; in a namespace of their own they end with the process.
    isolated = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
    with daemon((*isolated, programs / "containerd", "--config", config), log=folder / "containerd.log"):
        yield (programs / "ctr", "--address", socket, "--namespace", NAMESPACE)


def add_images(cache: Cache, images: list[Image], ctr: Command, folder: Path) -> None:
    """From the cache into the store that is open, under the names they are tagged with."""
    archive = folder / "images.tar"
    oci.write_archive(cache, images, archive)
    run((*ctr, "images", "import", "--platform", "linux/amd64", archive))
    archive.unlink()


def differences(store: Path) -> list[str]:
    """Files of the store that are not as they were when it was made."""
    try:
        noted: dict[str, str] = json.loads((store / _SUMS).read_text())
    except (FileNotFoundError, ValueError):
        return [_SUMS]
    actual = _sums(store)
    return sorted(name for name in noted.keys() | actual.keys() if noted.get(name) != actual.get(name))


def _sums(store: Path) -> dict[str, str]:
    """File → sha256, but for the databases, which containerd may rewrite, and links."""
    paths = [path for path in store.rglob("*") if path.is_file() and not path.is_symlink() and not _is_own(path)]
    with ThreadPoolExecutor() as pool:
        return {
            str(path.relative_to(store)): sum_ for path, sum_ in zip(paths, pool.map(sha256_of, paths), strict=True)
        }


def _is_own(path: Path) -> bool:
    """Whether a file belongs to one store only, and cannot be shared by a link."""
    return path.suffix == ".db" or path.name == _SUMS


@dataclass(frozen=True)
class Seeded:
    linked: int
    copied: int
    bytes_copied: int


def seed(store: Path, target: Path) -> Seeded:
    """Fill `target` with the store: hard links for what never changes, copies of the databases."""
    linked = copied = bytes_copied = 0
    for folder, _, files in os.walk(store):
        place = target / Path(folder).relative_to(store)
        status = Path(folder).stat()
        place.mkdir(parents=True, exist_ok=True)
        os.chown(place, status.st_uid, status.st_gid)
        place.chmod(status.st_mode & 0o7777)
        for name in files:
            source = Path(folder, name)
            if name == _SUMS:
                continue
            if _is_own(source):
                shutil.copy2(source, place / name)
                copied += 1
                bytes_copied += source.stat().st_size
                continue
            try:
                os.link(source, place / name, follow_symlinks=False)
            except OSError as error:
                raise FalseworkError(
                    f"{target} cannot share files with {store}",
                    cause=f"{error.strerror}: hard links do not cross file systems",
                    fix="set FALSEWORK_CACHE to a folder on the same file system as the machines' folders",
                ) from None
            linked += 1
    return Seeded(linked, copied, bytes_copied)
