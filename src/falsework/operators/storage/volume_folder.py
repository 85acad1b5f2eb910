"""On a node: makes or removes the folder of one volume. Done twice, it is done once."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.files import sync_folder

_VOLUME = re.compile(r"pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def make(folder: Path, volume: str) -> None:
    """For every user inside, because nobody knows yet who the pods will be; and for nobody else on the node.

    It is there with its rights or not at all: those of a volume in use are its pods' business.
    """
    folder.chmod(0o700)
    place = _place(folder, volume)
    if place.exists():
        return
    new = folder / f".{volume}.new"
    new.mkdir(exist_ok=True)
    new.chmod(0o777)
    new.rename(place)
    # A volume that is known to the API must be there after a power cut, too.
    sync_folder(folder)


def remove(folder: Path, volume: str) -> None:
    """Links in it are removed and not followed."""
    place = _place(folder, volume)
    for one in (place, folder / f".{volume}.new"):
        if os.path.lexists(one):
            shutil.rmtree(one)


def _place(folder: Path, volume: str) -> Path:
    if not _VOLUME.fullmatch(volume):
        raise FalseworkError(f"{volume!r} is no name of a volume", cause="nothing was touched")
    return folder / volume


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="volume-folder", description=__doc__)
    parser.add_argument("task", choices=("make", "remove"))
    parser.add_argument("volume")
    parser.add_argument("--folder", type=Path, required=True, help="that of all volumes")
    options = parser.parse_args(words)
    try:
        (make if options.task == "make" else remove)(options.folder, options.volume)
    except FalseworkError as error:
        print(f"volume-folder: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"volume-folder: {error.filename or options.volume}: {error.strerror}", file=sys.stderr)
        return 1
    return 0
