"""release-image.service: the release image is at hand, and it is for this kind of machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
from typing import Any

from falsework import process
from falsework.bootstrap.records import Records
from falsework.bootstrap.service import run_service, say
from falsework.bootstrap.waiting import Wait
from falsework.errors import FalseworkError
from falsework.process import CommandError

_PULL_PAUSE = 5.0
_PULL_SILENCE = 600.0
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What machines call themselves, and what images call them."""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="release-image", description=__doc__)
    parser.add_argument("image", nargs="?", default=os.environ.get("RELEASE_IMAGE", ""))
    image: str = parser.parse_args(words).image
    if not image:
        parser.error("no image is named, and RELEASE_IMAGE is not set")
    return run_service("release-image", lambda records: _run(image, records))


def _run(image: str, records: Records) -> None:
    with records.stage("pull-release-image"):
        wait = Wait(say, pause=_PULL_PAUSE)
        wait.until(f"the release image {image}", lambda: None if _at_hand(image) else _pulled(image))
    with records.stage("image-metadata-arches-match"):
        _compare_architectures(image)
    say(f"{image} is at hand")


def _at_hand(image: str) -> bool:
    try:
        return _inspected(image) is not None
    except CommandError:
        return False


def _pulled(image: str) -> str | None:
    say(f"Pulling {image}...")
    try:
        process.run(["crictl", "pull", image], silence_limit=_PULL_SILENCE)
    except CommandError as error:
        return "pull failed, retrying: " + (error.finished.last_lines(1) or error.what)
    return None


def _compare_architectures(image: str) -> None:
    found = _inspected(image)["info"]["imageSpec"].get("architecture", "")
    wanted = _ARCHITECTURES.get(platform.machine(), platform.machine())
    if found != wanted:
        raise FalseworkError(
            f"the release image is for {found or 'an unknown architecture'}, this machine is {wanted}",
            cause=f"{image} is a release for other machines",
            fix="make the assets with the release of this architecture",
        )


def _inspected(image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(process.run(["crictl", "inspecti", "--output", "json", image]).output)
    return found
