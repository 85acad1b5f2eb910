"""Images put together from parts that are only names of programs."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from falsework.conformance.images import IMAGES, registry_list, suite_images
from falsework.conformance.parts import ROOT
from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.oci import Image
from falsework.release.recipes import Part
from falsework.release.tarball import file_entry, folder_entry, write_tar


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", pytest.fail)


@pytest.fixture
def images(cache: Cache, tmp_path: Path) -> dict[str, Image]:
    names = {part for image in IMAGES for part in image.parts.values()}
    parts = {name: part(cache, name, cache.add_bytes(name.encode())) for name in names}
    root = tmp_path / "root.tar"
    programs = {"busybox": b"#!/bin/sh\necho busybox sh ls\n", "bash-static": b"a shell"}
    write_tar(root, [folder_entry("bin", 0), *(file_entry(f"bin/{name}", text, 0) for name, text in programs.items())])
    parts[ROOT] = part(cache, ROOT, cache.add(root))
    return {image.tagged.removeprefix(f"{registry_list()['gcRegistry']}/"): image for image in suite(cache, parts)}


def part(cache: Cache, name: str, digest: str) -> Part:
    return Part(name, "1", "somewhere", digest, cache.path_of(digest))


def suite(cache: Cache, parts: dict[str, Part]) -> list[Image]:
    made = suite_images(cache, parts, 0)
    assert suite_images(cache, parts, 0) == made
    return made


def settings(cache: Cache, image: Image) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(cache.path_of(oci.blobs_of(cache, image)[1]).read_bytes())["config"]
    return config


def members(cache: Cache, image: Image) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    for layer in oci.blobs_of(cache, image)[2:]:
        with tarfile.open(cache.path_of(layer)) as archive:
            found |= {member.name: member for member in archive}
    return found


def test_tests_find_every_image_where_they_are_told_to_look(images: dict[str, Image]) -> None:
    assert {"agnhost:2.63.0", "agnhost:2.55", "busybox:1.37.0-1", "etcd:3.6.8-0", "pause:3.10.2"} <= set(images)
    assert images["agnhost:2.55"].digest == images["agnhost:2.63.0"].digest


def test_busybox_has_a_link_for_each_of_its_names(cache: Cache, images: dict[str, Image]) -> None:
    found = members(cache, images["busybox:1.37.0-1"])
    assert found["usr/bin/busybox"].isreg()
    assert {name: found[f"usr/bin/{name}"].linkname for name in ("sh", "ls")} == {"sh": "bash-static", "ls": "busybox"}
    assert found["bin"].linkname == "usr/bin"


def test_images_over_others_have_what_these_have(cache: Cache, images: dict[str, Image]) -> None:
    assert {"agnhost", "data.json", "kitten.jpg", "bin/busybox"} <= set(members(cache, images["kitten:1.8"]))
    assert "usr/bin/sh" in members(cache, images["nonroot:1.5"])


def test_what_starts_and_as_whom_is_as_upstream_has_it(cache: Cache, images: dict[str, Image]) -> None:
    agnhost = settings(cache, images["agnhost:2.63.0"])
    assert (agnhost["Entrypoint"], agnhost["Cmd"]) == (["/agnhost"], ["pause"])
    assert settings(cache, images["nonroot:1.5"])["User"] == "1234"
    assert members(cache, images["nonewprivs:1.4"])["usr/bin/nnp"].mode == 0o4755
