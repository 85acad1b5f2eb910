"""The registry's storage with the release's images in it: a folder of links, made once per host.

The helper sees it through a bind mount, to be read alone; all labs of the host share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.oci import Image
from falsework.release.payload import REGISTRY
from falsework.release.recipes import key_of

NAME = "registry-store"
_HOME = "docker/registry/v2"


def registry_store(cache: Cache, images: Iterable[Image]) -> Path:
    """The folder, as the registry's file system driver wants it. Made only if it is not there."""
    listed = sorted(images, key=lambda image: image.name)
    key = key_of([NAME, [(image.tagged, image.digest) for image in listed], Path(__file__).read_text()])
    if not cache.has_tree(NAME, key):
        with cache.exclusive():
            # Another may have made it while we waited, and have given it to a helper: it is not to be made anew.
            if not cache.has_tree(NAME, key):
                with cache.new_tree(NAME, key) as tree:
                    for image in listed:
                        _add(cache, image, tree / _HOME)
    return cache.tree(NAME, key)


def add_to_store(cache: Cache, store: Path, images: Iterable[Image]) -> None:
    """Give a store that helpers have in use more images; their registries have them at once. All labs of the host see
    them, which harms none: nobody asks for an image that is not his."""
    with cache.exclusive():
        for image in images:
            _add(cache, image, store / _HOME)


def _add(cache: Cache, image: Image, home: Path) -> None:
    manifest, *parts = oci.blobs_of(cache, image)
    for digest in (manifest, *parts):
        data = home / "blobs" / "sha256" / digest[:2] / digest / "data"
        if not data.exists():
            cache.link(digest, f"image {image.name}", data)
    repository = home / "repositories" / image.repository.removeprefix(f"{REGISTRY}/")
    for digest in parts:
        _point(repository / "_layers" / "sha256" / digest, digest)
    _point(repository / "_manifests" / "revisions" / "sha256" / manifest, manifest)
    tag = repository / "_manifests" / "tags" / image.version
    _point(tag / "current", manifest)
    _point(tag / "index" / "sha256" / manifest, manifest)


def _point(folder: Path, digest: str) -> None:
    link, content = folder / "link", f"sha256:{digest}"
    # A registry may be reading it.
    if link.exists() and link.read_text() == content:
        return
    folder.mkdir(parents=True, exist_ok=True)
    link.write_text(content)
