"""falsework render: the facts of a site as configuration for servers of your own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from falsework.assets.pki import utc_now
from falsework.cli.site_folder import add_folder_option, site_in
from falsework.errors import FalseworkError, UsageError
from falsework.files import write_file
from falsework.helper.render import BIND, FORMATS, Files, as_one_text, render
from falsework.helper.render.bind import serial_in


def register(parser: argparse.ArgumentParser) -> None:
    width = max(map(len, FORMATS))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "formats:\n" + "\n".join(f"  {name:<{width}}  {form.summary}" for name, form in FORMATS.items())
    parser.add_argument("format", choices=FORMATS, metavar="FORMAT", help="one of the formats below")
    add_folder_option(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--output", type=Path, metavar="FOLDER", help="write the files there instead of printing them")
    where.add_argument("--json", action="store_true", help="print one JSON object: path → text")
    parser.add_argument(
        "--previous",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help=f"{BIND}: a zone file in use (or a file with its serial alone); the new serial is larger",
    )


def run(options: argparse.Namespace) -> int:
    if options.previous and options.format != BIND:
        raise UsageError(f"--previous says nothing to {options.format}", fix=f"leave it out: only {BIND} has serials")
    output: Path | None = options.output
    site = site_in(options.dir)
    today = utc_now().date()
    serials = [_serial(path) for path in options.previous]
    if output and options.format == BIND:
        zones = [output / name for name in render(BIND, site, today)]
        serials += [_serial(path) for path in zones if path.suffix == ".zone" and path.exists()]
    files = render(options.format, site, today, max(serials, default=None))
    if output:
        _write(files, output)
    elif options.json:
        print(json.dumps(files, indent=1))
    else:
        print(as_one_text(files), end="")
    return 0


def _serial(path: Path) -> int:
    try:
        serial = serial_in(path.read_text(errors="replace"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read", cause=error.strerror, fix="name a zone file in use") from None
    if serial is None:
        raise UsageError(
            f"{path} has no serial",
            cause="it is neither a zone file with a SOA record nor a number",
            fix="name another file with --previous, or move this one away",
        )
    return serial


def _write(files: Files, folder: Path) -> None:
    """What is as it should be is not touched, so that its date says when it changed."""
    for name, text in files.items():
        path = folder / name
        try:
            if path.is_file() and path.read_bytes() == text.encode():
                print(f"{path} is up to date")
                continue
            write_file(path, text.encode())
        except OSError as error:
            raise FalseworkError(
                f"{path} cannot be written",
                cause=error.strerror,
                fix="name a folder that you may write to with --output",
            ) from None
        print(f"{path} written")
