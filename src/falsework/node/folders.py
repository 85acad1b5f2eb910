"""Folders of files as they are to be, whenever the power fails or the writer is killed."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from falsework.files import sync_folder, write_file

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def make_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Exactly these files, by their paths in it, and no others. What is right stays untouched."""
    wanted = {folder / name: content for name, content in files.items()}
    folders = sorted({parent for path in wanted for parent in path.parents if parent.is_relative_to(folder)})
    above = [parent for parent in reversed(folder.parents) if not parent.exists()]
    changed = {path.parent for path in (*above, *folders) if _make(path)}
    for path in folders:
        for entry in path.iterdir():
            if entry not in wanted and entry not in folders:
                _remove(entry)
                changed.add(path)
    for path, content in wanted.items():
        if not is_file(path, content):
            if path.is_dir():
                _remove(path)
            write_file(path, content, FILE_MODE)
            changed.add(path.parent)
    for path in sorted(changed, reverse=True):
        sync_folder(path)


def is_file(path: Path, content: bytes) -> bool:
    """Whether it is there, with this content and for its owner alone."""
    try:
        return is_private_file(path) and path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def is_private_file(path: Path) -> bool:
    """A file of its own, not what a link leads to, and for its owner alone."""
    return path.lstat().st_mode == stat.S_IFREG | FILE_MODE


def _make(folder: Path) -> bool:
    """Whether it is new."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    if folder.is_dir():
        if folder.stat().st_mode & 0o777 != FOLDER_MODE:
            folder.chmod(FOLDER_MODE)
        return False
    # Another component's may be making it this moment.
    folder.mkdir(FOLDER_MODE, exist_ok=True)
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
