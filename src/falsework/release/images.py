"""The release's container images, put together from its parts."""

from __future__ import annotations

import dataclasses
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.oci import Image, canonical_json
from falsework.release.payload import ImageSpec, Payload
from falsework.release.recipes import Part, key_of
from falsework.release.tarball import Entry, file_entry, folder_entry

OS_ROOT = "debian-os"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"

_PASSWD = b"root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"


def assembled(cache: Cache, name: str, version: str, inputs: Any, code: str, make: Callable[[], Image]) -> Image:
    """The image made from these inputs by this code (a module's file): from the cache if it is all there."""
    key = key_of([name, version, inputs, Path(code).read_text()])
    if record := cache.record(key):
        image = Image(name, version, record["digest"], record["size"])
        if cache.find(image.digest, name) and all(cache.find(blob, name) for blob in oci.blobs_of(cache, image)):
            return image
    image = make()
    cache.set_record(key, {"digest": image.digest, "size": image.size})
    return image


def component_image(cache: Cache, spec: ImageSpec, parts: dict[str, Part], epoch: int) -> Image:
    """Programs in /usr/bin over an optional Debian root."""
    base = [parts[spec.base].digest] if spec.base else []
    used = [*spec.programs, *([OS_ROOT] if spec.certificates else [])]

    def make() -> Image:
        entries = [
            *common_entries(epoch),
            *(file_entry(f"usr/bin/{name}", parts[name].path, epoch, 0o755) for name in spec.programs),
        ]
        if spec.certificates:
            entries += certificate_entries(parts[OS_ROOT].path, epoch)
        layers = [*base, oci.add_layer(cache, entries)]
        return oci.add_image(
            cache, spec.name, spec.version, layers, entrypoint=spec.entrypoint, stop_signal=spec.stop_signal
        )

    inputs = [dataclasses.asdict(spec), base, [parts[name].digest for name in used], epoch]
    return assembled(cache, spec.name, spec.version, inputs, __file__, make)


def release_image(cache: Cache, payload: Payload, images: Iterable[Image]) -> Image:
    """The image that stands for the release: it lists the others, in the files and forms OpenShift's has."""
    listed = sorted(images, key=lambda image: image.name)

    def make() -> Image:
        files = {"image-references": _image_references(payload, listed), "release-metadata": _metadata(payload)}
        layer = oci.add_layer(
            cache,
            [
                folder_entry("release-manifests", payload.epoch),
                *(
                    file_entry(f"release-manifests/{name}", canonical_json(content) + b"\n", payload.epoch)
                    for name, content in files.items()
                ),
            ],
        )
        labels = {"io.openshift.release": payload.version}
        return oci.add_image(cache, "release", payload.version, [layer], labels=labels)

    inputs = [[image.pinned, image.version] for image in listed]
    return assembled(cache, "release", payload.version, inputs, __file__, make)


def _image_references(payload: Payload, images: list[Image]) -> dict[str, Any]:
    return {
        "apiVersion": "image.openshift.io/v1",
        "kind": "ImageStream",
        "metadata": {"name": payload.version},
        "spec": {
            "lookupPolicy": {"local": False},
            "tags": [
                {
                    "name": image.name,
                    "annotations": {"io.openshift.build.versions": f"{image.name}={image.version}"},
                    "from": {"kind": "DockerImage", "name": image.pinned},
                }
                for image in images
            ],
        },
    }


def _metadata(payload: Payload) -> dict[str, Any]:
    return {"kind": "cincinnati-metadata-v0", "version": payload.version, "previous": [], "metadata": {}}


def common_entries(epoch: int) -> list[Entry]:
    """What programs expect of any root: a place for temporary files, and names for the users they run as."""
    return [
        folder_entry("etc", epoch),
        file_entry("etc/group", _GROUP, epoch),
        file_entry("etc/passwd", _PASSWD, epoch),
        folder_entry("tmp", epoch, 0o1777),
        folder_entry("usr", epoch),
        folder_entry("usr/bin", epoch),
    ]


def certificate_entries(os_root: Path, epoch: int) -> list[Entry]:
    """The public certificate authorities, as Debian ships them."""
    with tarfile.open(os_root) as archive:
        bundle = archive.extractfile(CERTIFICATES)
        assert bundle is not None, "the OS root has ca-certificates"
        return [
            folder_entry("etc/ssl", epoch),
            folder_entry("etc/ssl/certs", epoch),
            file_entry(CERTIFICATES, bundle.read(), epoch),
        ]
