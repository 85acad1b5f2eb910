"""Container images without a builder: layers, configs and manifests as files, named by their digests.

Layers are plain tar. Compressing them would cost every host the time to undo it, and its result depends on
the version of zlib at hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falsework.release.cache import Cache
from falsework.release.payload import repository_of
from falsework.release.tarball import Entry, file_entry, write_tar

LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True)
class Image:
    """An image in the cache; `digest` is that of its manifest."""

    name: str
    version: str
    digest: str
    size: int

    @property
    def repository(self) -> str:
        return repository_of(self.name)

    @property
    def tagged(self) -> str:
        return f"{self.repository}:{self.version}"

    @property
    def pinned(self) -> str:
        return f"{self.repository}@sha256:{self.digest}"


def canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def add_layer(cache: Cache, entries: Iterable[Entry]) -> str:
    with cache.work("layer") as folder:
        draft = folder / "layer.tar"
        write_tar(draft, entries)
        return cache.add(draft)


def add_image(
    cache: Cache,
    name: str,
    version: str,
    layers: list[str],
    *,
    entrypoint: Iterable[str] = (),
    arguments: Iterable[str] = (),
    user: str = "",
    stop_signal: str = "",
    env: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Image:
    """Write config and manifest for layers that are in the cache."""
    settings: dict[str, Any] = {
        "Env": [f"{key}={value}" for key, value in {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})}.items()],
        "Labels": {"org.opencontainers.image.version": version, **(labels or {})},
        "WorkingDir": "/",
    }
    given = {
        "Entrypoint": list(entrypoint),
        "Cmd": list(arguments),
        "User": user,
        "StopSignal": stop_signal,
    }
    settings |= {key: value for key, value in given.items() if value}
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}" for layer in layers]},
    }
    manifest = canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _descriptor(cache, CONFIG, cache.add_bytes(canonical_json(config))),
            "layers": [_descriptor(cache, LAYER, layer) for layer in layers],
        }
    )
    digest = cache.add_bytes(manifest)
    return Image(name, version, digest, _size(manifest))


def blobs_of(cache: Cache, image: Image) -> list[str]:
    """Every blob an image consists of, its manifest first."""
    manifest = json.loads(cache.path_of(image.digest).read_bytes())
    parts = [manifest["config"], *manifest["layers"]]
    return [image.digest, *(part["digest"].removeprefix("sha256:") for part in parts)]


def write_archive(cache: Cache, images: Iterable[Image], target: Path) -> None:
    """An OCI image layout with these images as one tar archive, as `ctr images import` reads it."""
    listed = list(images)
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [
            {
                **_descriptor(cache, MANIFEST, image.digest),
                "annotations": {
                    "io.containerd.image.name": image.tagged,
                    "org.opencontainers.image.ref.name": image.version,
                },
            }
            for image in listed
        ],
    }
    entries = [
        file_entry("oci-layout", canonical_json({"imageLayoutVersion": "1.0.0"}), 0),
        file_entry("index.json", canonical_json(index), 0),
    ]
    for image in listed:
        entries += [file_entry(f"blobs/sha256/{blob}", cache.path_of(blob), 0) for blob in blobs_of(cache, image)]
    write_tar(target, entries)


def _descriptor(cache: Cache, media_type: str, digest: str) -> dict[str, Any]:
    return {
        "mediaType": media_type,
        "digest": f"sha256:{digest}",
        "size": cache.path_of(digest).stat().st_size,
    }


def _size(manifest: bytes) -> int:
    parsed = json.loads(manifest)
    return len(manifest) + sum(int(part["size"]) for part in (parsed["config"], *parsed["layers"]))
