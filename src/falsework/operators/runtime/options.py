"""What every operator can be told."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path


def parsed_options(
    name: str, words: Sequence[str], port: int, leads: bool, arguments: Callable[[argparse.ArgumentParser], None]
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(name, description=f"The {name} of a cluster.")
    parser.add_argument(
        "--kubeconfig", type=Path, help="how the API is reached (default: as the pod's service account)"
    )
    parser.add_argument("--release-version", default="", help="the release whose version is reported")
    parser.add_argument(
        "--image", type=named_image, action="append", default=[], metavar="NAME=REF", help="an image of the release"
    )
    parser.add_argument(
        "--listen",
        type=_address,
        default=("127.0.0.1", port),
        metavar="HOST:PORT",
        help=f"where /healthz and /metrics are (default: 127.0.0.1:{port})",
    )
    parser.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=leads,
        help="work only while holding the lease",
    )
    arguments(parser)
    return parser.parse_args(list(words))


def named_image(text: str) -> tuple[str, str]:
    name, _, reference = text.partition("=")
    if not name or not reference:
        raise argparse.ArgumentTypeError(f"{text} is not of the form NAME=REF")
    return name, reference


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not of the form HOST:PORT")
    return host, int(port)
