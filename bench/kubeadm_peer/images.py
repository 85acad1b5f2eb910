"""The release's images under the names kubeadm asks for, in a store of its own to seed the machines from."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

from falsework.process import run
from falsework.progress import Progress
from falsework.release import imagestore, oci
from falsework.release.build import build_release
from falsework.release.cache import Cache, default_root
from falsework.release.inventory import Release
from falsework.release.oci import Image
from falsework.release.payload import Payload, load_payload
from falsework.release.tarball import folder_entry, link_entry

KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
"""Those whose tag is the Kubernetes version, with a v; of the others kubeadm's config may give the tag."""


@contextlib.contextmanager
def peer_images() -> Iterator[Path]:
    """The store, as long as the block lasts. On the cache's file system, so that machines can share its files."""
    with Progress() as progress:
        cache, payload = Cache(default_root(), progress.say), load_payload()
        release = build_release(payload, cache, progress)
        with tempfile.TemporaryDirectory(dir=cache.root.parent, prefix="falsework-bench-images-") as store:
            _fill(Path(store), cache, payload, release)
            yield Path(store)


def _fill(store: Path, cache: Cache, payload: Payload, release: Release) -> None:
    """All images of the release, and those of Kubernetes once more with kubeadm's tags."""
    imagestore.seed(release.image_store, store)
    with cache.exclusive(), cache.work("kubeadm-images") as folder:
        renamed = [dataclasses.replace(release.images[name], version=tag_of(payload)) for name in KUBERNETES[:-1]]
        proxy = _proxy_image(cache, payload, release.images["kube-proxy"])
        with imagestore.opened(release.parts, store, folder) as ctr:
            for image in renamed:
                run((*ctr, "images", "tag", release.images[image.name].tagged, image.tagged))
            imagestore.add_images(cache, [proxy], ctr, folder)


def tag_of(payload: Payload) -> str:
    return f"v{payload.go_units['kubernetes'].version}"


def _proxy_image(cache: Cache, payload: Payload, image: Image) -> Image:
    """kubeadm's manifest starts kube-proxy by its path in Kubernetes' own image."""
    layers = oci.blobs_of(cache, image)[2:]
    path = "usr/local/bin"
    entries = [folder_entry("usr/local", payload.epoch), folder_entry(path, payload.epoch)]
    link = link_entry(f"{path}/kube-proxy", "/usr/bin/kube-proxy", payload.epoch)
    return oci.add_image(cache, image.name, tag_of(payload), [*layers, oci.add_layer(cache, [*entries, link])])
