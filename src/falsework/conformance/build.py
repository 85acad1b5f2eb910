"""The tests, their runner and their images on this host: from the cache, or built."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from falsework.conformance.images import suite_images
from falsework.conformance.parts import LOCK_FILE, RUNNER, TESTS, UNIT, conformance_payload, without_the_releases
from falsework.files import write_file
from falsework.host import packages
from falsework.progress import Progress
from falsework.release import modpins
from falsework.release.build import HOST_PROGRAMS
from falsework.release.cache import Cache
from falsework.release.oci import Image
from falsework.release.recipes import BUILD_ROOT, Part, Workshop
from falsework.release.sources import Sources


@dataclass(frozen=True)
class Suite:
    tests: Part
    runner: Part
    images: tuple[Image, ...]


@contextlib.contextmanager
def _prepared(cache: Cache, progress: Progress) -> Iterator[None]:
    packages.ensure(HOST_PROGRAMS, progress.say)
    with cache.exclusive():
        yield


def build_suite(cache: Cache, progress: Progress) -> Suite:
    payload = conformance_payload()
    with _prepared(cache, progress):
        parts = Sources(payload, cache, progress).gather()
        with progress.task("test images", worth_telling=1.0):
            images = suite_images(cache, parts, payload.epoch)
    return Suite(parts[TESTS], parts[RUNNER], tuple(images))


def build_tests(cache: Cache, progress: Progress) -> Part:
    """The tests alone, which is enough to list them."""
    with _prepared(cache, progress):
        return Sources(conformance_payload(), cache, progress).gather()[TESTS]


def pin_suite(cache: Cache, progress: Progress) -> None:
    """After a change of the release's Kubernetes, or of what the images have: write go.mod, go.sum and the digests of
    what comes out anew."""
    payload = without_the_releases(conformance_payload())
    with _prepared(cache, progress):
        sources = Sources(payload, cache, progress, repin=True)
        goroot = Workshop(payload, cache, sources.need, progress.say).goroot()
        modpins.pin_modules(payload.go_units[UNIT], payload, goroot, cache.go_caches())
        parts = sources.gather()
        used = sources.packages_in_use()
    lock = {
        "pins": {name: {"sha256": part.digest, "size": part.path.stat().st_size} for name, part in parts.items()},
        "packages": {root: names for root, names in used.items() if root != BUILD_ROOT},
    }
    write_file(LOCK_FILE, json.dumps(lock, indent=1, sort_keys=True).encode() + b"\n")
