"""falsework release: the payload on this host."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

from falsework.files import explained_disk_errors
from falsework.progress import Progress
from falsework.release.cache import DISK_NEED, Cache, default_root
from falsework.release.payload import load_payload


def register(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    build = actions.add_parser("build", help="bring everything onto this host: from the cache, a mirror or by building")
    build.add_argument("--mirror", metavar="DIR|URL", help="a copy made by `release export`; checked by digest")
    build.add_argument("--locked", action="store_true", help="refuse Debian packages newer than the pinned ones")

    info = actions.add_parser("info", help="list every component with version, digest, size and source")
    info.add_argument("--json", action="store_true", help="as JSON")

    actions.add_parser("verify", help="read everything again and compare digests")

    export = actions.add_parser("export", help="copy the release to a folder that serves as a mirror")
    export.add_argument("folder", type=Path, metavar="DIR")

    squashfs = actions.add_parser("squashfs", help="write the OS image as one file for network boot")
    squashfs.add_argument("file", type=Path, metavar="FILE")

    actions.add_parser("prune", help="remove from the cache what this release does not consist of, and Go's caches")

    modules = actions.add_parser("modules", help="after a change of a version: write a unit's go.mod and go.sum anew")
    modules.add_argument("unit", choices=sorted(load_payload().go_units), metavar="UNIT")

    actions.add_parser(
        "lock", help="after a change of the payload: build it and write the new digests to the repository"
    )


def run(options: argparse.Namespace) -> int:
    with Progress() as progress:
        cache = Cache(default_root(), progress.say)
        with explained_disk_errors(cache.root, DISK_NEED):
            return ACTIONS[options.action](options, cache, progress)


def _build(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:
    from falsework.release.build import build_release
    from falsework.release.mirror import open_mirror

    started = time.monotonic()
    mirror = open_mirror(options.mirror, progress.say) if options.mirror else None
    release = build_release(load_payload(), cache, progress, mirror=mirror, locked=options.locked)
    progress.say(
        f"release {release.version}: {len(release.parts)} parts and {len(release.images)} images "
        f"in {cache.root}, {time.monotonic() - started:.1f} s"
    )
    return 0


def _info(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:  # noqa: ARG001
    from falsework.release import inventory

    payload = load_payload()
    items = inventory.items(cache, payload)
    if options.json:
        print(
            json.dumps(
                {"version": payload.version, "components": [dataclasses.asdict(item) for item in items]}, indent=1
            )
        )
        return 0
    print(f"{'NAME':<26} {'KIND':<8} {'VERSION':<9} {'DIGEST':<19} {'SIZE':>9}  {'HERE':<4} SOURCE")
    for item in items:
        digest = f"sha256:{item.digest[:12]}" if item.digest else "not yet"
        here = "yes" if item.present else "no"
        size = f"{item.size / 1e6:.1f} MB"
        print(f"{item.name:<26} {item.kind:<8} {item.version:<9} {digest:<19} {size:>9}  {here:<4} {item.source}")
    return 0


def _verify(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:  # noqa: ARG001
    from falsework.release import inventory

    with cache.exclusive():
        faults = inventory.verify(cache, load_payload(), progress)
    for fault in faults:
        progress.say(f"wrong: {fault}")
    progress.say("removed what was wrong: run `falsework release build`" if faults else "everything is as it should be")
    return 1 if faults else 0


def _export(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:
    from falsework.release import inventory

    with cache.exclusive(), explained_disk_errors(options.folder, "a mirror takes about 2 GB"):
        copied = inventory.export(cache, load_payload(), options.folder, progress)
    progress.say(f"{copied / 1e6:.0f} MB copied; elsewhere: falsework release build --mirror {options.folder}")
    return 0


def _squashfs(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:
    from falsework.host import packages
    from falsework.release.build import build_release
    from falsework.release.osimage import write_squashfs

    payload = load_payload()
    packages.ensure(("mksquashfs",), progress.say)
    release = build_release(payload, cache, progress)
    write_squashfs(release.os_root, payload.epoch, options.file)
    progress.say(f"{options.file}: {options.file.stat().st_size / 1e6:.0f} MB")
    return 0


def _prune(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:  # noqa: ARG001
    from falsework.release import inventory

    with cache.exclusive():
        before = cache.free_bytes()
        kept = inventory.prune(cache, load_payload())
    for tree in kept:
        progress.say(f"{tree} is in use by a machine and was kept")
    progress.say(f"{(cache.free_bytes() - before) / 1e9:.1f} GB freed")
    return 0


def _modules(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:
    from falsework.release.build import pin_modules_of

    pin_modules_of(options.unit, load_payload(), cache, progress)
    progress.say(f"{options.unit}: go.mod and go.sum written; now `falsework release lock`")
    return 0


def _lock(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:  # noqa: ARG001
    from falsework.release.build import repin

    changed = repin(load_payload(), cache, progress)
    progress.say(f"{changed} digests changed in payload.lock.json")
    return 0


ACTIONS = {
    "build": _build,
    "info": _info,
    "verify": _verify,
    "export": _export,
    "squashfs": _squashfs,
    "prune": _prune,
    "modules": _modules,
    "lock": _lock,
}
