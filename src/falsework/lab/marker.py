"""The file that makes a folder a lab's: which Falsework wrote it, and for which site folder."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from falsework.files import write_file
from falsework.lab.folder import Lab

VERSION = 1
"""Of what is kept in a lab's folder. It grows when an older lab can no longer be continued."""
FILE = "lab.json"
_LAB_ID = re.compile(r"fw-[0-9a-f]{8}")


@dataclass(frozen=True)
class Marker:
    version: int
    site_folder: Path


def mark(lab: Lab) -> None:
    """Make the lab's folder, or find it made. What somebody else put there does not become a lab by this."""
    lab.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_empty(lab.root):
        content = {"version": VERSION, "siteFolder": str(lab.site_folder)}
        write_file(lab.root / FILE, json.dumps(content).encode() + b"\n", 0o600)


def unmark(lab: Lab) -> None:
    """The first step of removing the folder: from here on it is no lab that could be continued."""
    (lab.root / FILE).unlink(missing_ok=True)


def read_marker(folder: Path) -> Marker | None:
    """None if there is none; ValueError if it cannot be read."""
    try:
        content = json.loads((folder / FILE).read_bytes())
        return Marker(int(content["version"]), Path(content["siteFolder"]))
    except FileNotFoundError:
        return None
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from None


def is_empty(folder: Path) -> bool:
    """Whether nothing of a lab is in it: at most the draft of a marker that a kill cut short."""
    return not folder.is_dir() or all(path.name.startswith(f".{FILE}.") for path in folder.iterdir())


def lab_folders(root: Path) -> list[Path]:
    """The folders of all labs on this host."""
    return sorted(path for path in root.glob("fw-*") if _LAB_ID.fullmatch(path.name) and path.is_dir())
