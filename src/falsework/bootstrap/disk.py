"""The one door to the machine's files for the stages of bootkube.

Each call is one step: after a kill it has happened or it has not, whatever the step. What makes a file appear in
the kubelet's folder is a rename, so the kubelet never sees half a manifest; drafts begin with a dot, which it ignores.
"""

from __future__ import annotations

import os
from pathlib import Path

from falsework.files import is_draft, remove_tree, write_file


class Disk:
    def __init__(self, root: Path = Path("/")) -> None:
        """`root` is what stands for / in a test."""
        self._root = root

    def place(self, path: Path) -> Path:
        """Where the machine's `path` really is."""
        return self._root / path.relative_to("/")

    def has(self, path: Path) -> bool:
        return self.place(path).exists()

    def read(self, path: Path) -> bytes:
        return self.place(path).read_bytes()

    def files(self, folder: Path) -> list[Path]:
        """All files below a folder, by name; none if it does not exist. Drafts do not count."""
        place = self.place(folder)
        found = (path for path in place.rglob("*") if path.is_file() and not path.name.startswith("."))
        return sorted(folder / path.relative_to(place) for path in found)

    def write(self, path: Path, content: bytes, mode: int = 0o644) -> None:
        """Nothing happens if it is there already, as it should be."""
        if not self.is_written(path, content, mode):
            write_file(self.place(path), content, mode)

    def is_written(self, path: Path, content: bytes, mode: int) -> bool:
        try:
            with self.place(path).open("rb") as file:
                return os.fstat(file.fileno()).st_mode & 0o777 == mode and file.read() == content
        except FileNotFoundError:
            return False

    def move(self, source: Path, target: Path) -> None:
        self.place(target).parent.mkdir(parents=True, exist_ok=True)
        self.place(source).replace(self.place(target))

    def make_folder(self, path: Path, mode: int = 0o755) -> None:
        self.place(path).mkdir(mode=mode, parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        """A file or a folder, which may be gone already, or half-gone after a kill."""
        place = self.place(path)
        if place.is_dir() and not place.is_symlink():
            remove_tree(place)
        else:
            place.unlink(missing_ok=True)

    def remove_drafts(self, folder: Path) -> None:
        """What a killed run left there half-written."""
        place = self.place(folder)
        for path in place.glob(".*") if place.is_dir() else ():
            if is_draft(path.name):
                path.unlink()
