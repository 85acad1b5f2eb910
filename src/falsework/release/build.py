"""From the payload to a `Release` on this host: what the other rooms work with."""

from __future__ import annotations

import json
import os
import platform

from falsework.errors import FalseworkError
from falsework.files import write_file
from falsework.host import packages
from falsework.progress import Progress
from falsework.release import imagestore, inventory, modpins, osimage, own_image
from falsework.release.cache import Cache
from falsework.release.images import OS_ROOT, component_image, release_image
from falsework.release.inventory import Release
from falsework.release.mirror import Mirror
from falsework.release.payload import LOCK_FILE, Payload
from falsework.release.recipes import BUILD_ROOT, Part, Workshop
from falsework.release.sources import Sources

HOST_PROGRAMS = ("setpriv", "unshare", "mmdebstrap", "apt-get", "debian-archive-keyring")


def build_release(
    payload: Payload, cache: Cache, progress: Progress, *, mirror: Mirror | None = None, locked: bool = False
) -> Release:
    """Look for every part, fetch or build what is missing, put together what is made of them."""
    _check_host()
    packages.ensure(HOST_PROGRAMS, progress.say)
    with cache.exclusive():
        parts = Sources(payload, cache, progress, mirror=mirror, locked=locked).gather()
        release = _assemble(payload, cache, progress, parts, mirror)
        inventory.note(cache, payload, release)
        return release


def _assemble(
    payload: Payload, cache: Cache, progress: Progress, parts: dict[str, Part], mirror: Mirror | None
) -> Release:
    with progress.task("images", worth_telling=1.0):
        images = {spec.name: component_image(cache, spec, parts, payload.epoch) for spec in payload.images.values()}
        images["falsework"] = own_image.own_image(
            cache, parts[own_image.PYTHON_ROOT], parts[OS_ROOT], payload.epoch, mirror, progress.say
        )
        images["release"] = release_image(cache, payload, images.values())
    with progress.task("OS image", worth_telling=1.0):
        os_digest, os_root = osimage.os_image(cache, payload, parts)
    with progress.task("image store", worth_telling=1.0):
        store = imagestore.image_store(cache, parts, images.values())
    return Release(payload.version, parts, images, os_digest, os_root, store)


def pin_modules_of(unit: str, payload: Payload, cache: Cache, progress: Progress) -> None:
    """After a change of a unit's version: write its go.mod and go.sum anew, with the pinned Go toolchain."""
    with cache.exclusive():
        sources = Sources(payload, cache, progress)
        goroot = Workshop(payload, cache, sources.need, progress.say).goroot()
        modpins.pin_modules(payload.go_units[unit], payload, goroot, cache.go_caches())


def repin(payload: Payload, cache: Cache, progress: Progress) -> int:
    """Build what the payload says and write what came out as the new pins; return how many changed."""
    _check_host()
    packages.ensure(HOST_PROGRAMS, progress.say)
    with cache.exclusive():
        sources = Sources(payload, cache, progress, repin=True)
        root = sources.need(BUILD_ROOT)
        parts = {**sources.gather(), BUILD_ROOT: root}
        pins = {name: {"sha256": part.digest, "size": part.path.stat().st_size} for name, part in parts.items()}
        lock = {"pins": pins, "packages": sources.packages_in_use()}
    write_file(LOCK_FILE, json.dumps(lock, indent=1, sort_keys=True).encode() + b"\n")
    return sum(
        payload.pins.get(name) is None or payload.pins[name].sha256 != pin["sha256"] for name, pin in pins.items()
    )


def _check_host() -> None:
    if os.geteuid() != 0:
        raise FalseworkError(
            "the OS image holds files of many owners, which only root can make",
            fix="run the same command with sudo",
        )
    if platform.machine() != "x86_64":
        raise FalseworkError(
            f"this host is {platform.machine()}; the release is pinned for x86_64",
            fix="use an x86_64 host",
        )
