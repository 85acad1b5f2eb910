"""Content-addressed storage on this host, shared by every checkout and cluster.

    blobs/sha256/<digest>      files, named by what is in them
    trees/<name>-<digest>/     folders unpacked from blobs (the OS root, toolchains, image stores)
    records/<key>.json         what an assembly step made from inputs that hash to <key>
    work/                      drafts of a run in progress; whatever a killed run left is removed by the next
    go/                        Go's own module and build caches

A blob is trusted without reading it again only while its size, inode and change time are those noted when it
was last hashed. Anyone who writes to it changes the change time, so an altered file is always noticed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError
from falsework.files import explained_disk_errors, only_one, remove_tree, sha256_of, write_file

DISK_NEED = "a full build needs about 15 GB; `falsework release prune` then leaves about 5 GB"


def default_root() -> Path:
    if chosen := os.environ.get("FALSEWORK_CACHE"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/cache/falsework")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "falsework"


class Cache:
    def __init__(self, root: Path, report: Callable[[str], None]) -> None:
        """`report` is told, in a sentence, about everything found wrong and put right."""
        self.root = root
        self.report = report
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)

    # Blobs

    def path_of(self, digest: str) -> Path:
        return self.root / "blobs" / "sha256" / digest

    def find(self, digest: str, name: str) -> Path | None:
        """The blob with this digest, or None. A damaged one is removed and reported."""
        path = self.path_of(digest)
        try:
            if self._seal_of(path) == self._noted_seal(path):
                return path
            actual = sha256_of(path)
        except FileNotFoundError:
            return None
        if actual == digest:
            self._note_seal(path)
            return path
        self.discard(digest)
        self.report(f"{name}: the cached file had been altered or cut short; it was removed")
        return None

    def is_untouched(self, digest: str) -> bool:
        """Whether the blob is here and nobody has written to it since it was last hashed. Changes nothing."""
        path = self.path_of(digest)
        try:
            return bool(self._seal_of(path) == self._noted_seal(path))
        except FileNotFoundError:
            return False

    def check(self, digest: str) -> str | None:
        """Read a blob again in full. None if it is whole, else what is wrong with it."""
        path = self.path_of(digest)
        try:
            actual = sha256_of(path)
        except FileNotFoundError:
            return "missing"
        return None if actual == digest else f"its content is sha256:{actual}"

    def discard(self, digest: str) -> None:
        path = self.path_of(digest)
        path.unlink(missing_ok=True)
        self._seal_path(path).unlink(missing_ok=True)

    def add(self, draft: Path, expected: str | None = None) -> str:
        """Move a finished file of the work folder into the cache; return its digest."""
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        digest = sha256_of(draft)
        if expected is not None and digest != expected:
            draft.unlink()
            raise DigestMismatchError(expected, digest)
        path = self.path_of(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.chmod(0o644)
        draft.replace(path)
        self._note_seal(path)
        return digest

    def add_bytes(self, content: bytes) -> str:
        with self.work("bytes") as folder:
            draft = folder / "blob"
            draft.write_bytes(content)
            return self.add(draft)

    def link(self, digest: str, name: str, target: Path) -> None:
        """Give a blob a second name. Linking changes its change time, which must not make it look altered."""
        path = self.find(digest, name)
        if path is None:
            raise FalseworkError(f"{name} is missing from the cache", fix="run `falsework release build`")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(path)
        self._note_seal(path)

    @staticmethod
    def _seal_of(path: Path) -> dict[str, int]:
        status = path.stat()
        return {"size": status.st_size, "inode": status.st_ino, "changed": status.st_ctime_ns}

    @staticmethod
    def _seal_path(path: Path) -> Path:
        return path.with_name(f"{path.name}.seal")

    def _noted_seal(self, path: Path) -> Any:
        try:
            return json.loads(self._seal_path(path).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def _note_seal(self, path: Path) -> None:
        write_file(self._seal_path(path), json.dumps(self._seal_of(path)).encode())

    def blobs(self) -> list[str]:
        """The digests of everything there is."""
        folder = self.root / "blobs" / "sha256"
        return sorted(path.name for path in folder.glob("*") if re.fullmatch(r"[0-9a-f]{64}", path.name))

    # Trees

    def tree(self, name: str, key: str) -> Path:
        """Where the unpacked folder `name` made from `key` is, or would be."""
        return self.root / "trees" / f"{name}-{key[:16]}"

    def has_tree(self, name: str, key: str) -> bool:
        return self._tree_mark(name, key).is_file()

    @contextlib.contextmanager
    def new_tree(self, name: str, key: str) -> Iterator[Path]:
        """A folder to fill; it becomes the tree when the block ends well."""
        target = self.tree(name, key)
        with self.work(name) as folder:
            draft = folder / "tree"
            draft.mkdir()
            yield draft
            self.drop_tree_at(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(target)
            write_file(self._tree_mark(name, key), b"")

    def _tree_mark(self, name: str, key: str) -> Path:
        tree = self.tree(name, key)
        return tree.with_name(f"{tree.name}.complete")

    def trees_named(self, name: str = "*") -> list[Path]:
        """Every complete tree of this name, whatever it was made from."""
        marks = (self.root / "trees").glob(f"{name}-{'?' * 16}.complete")
        return sorted(mark.with_suffix("") for mark in marks)

    def drop_tree_at(self, tree: Path) -> None:
        tree.with_name(f"{tree.name}.complete").unlink(missing_ok=True)
        remove_tree(tree)

    def one_at_a_time(self, name: str) -> threading.Lock:
        """For threads of this process that may want to make the same tree."""
        return self._turns[name]

    # Records

    def record(self, key: str) -> Any:
        """What was made from the inputs `key` stands for, or None."""
        try:
            return json.loads(self._record_path(key).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def set_record(self, key: str, value: Any) -> None:
        write_file(self._record_path(key), json.dumps(value, indent=1, sort_keys=True).encode())

    def _record_path(self, key: str) -> Path:
        return self.root / "records" / f"{key}.json"

    # Work in progress

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Only one process changes the cache at a time; leftovers of killed ones are cleared first."""
        with explained_disk_errors(self.root, DISK_NEED):
            self.root.mkdir(parents=True, exist_ok=True)
            with only_one(
                self.root / "lock", lambda owner: self.report(f"{owner} is working on {self.root}; waiting for it")
            ):
                self._clear_leftovers()
                yield

    @contextlib.contextmanager
    def work(self, purpose: str) -> Iterator[Path]:
        parent = self.root / "work"
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{purpose}."))
        try:
            yield folder
        finally:
            remove_tree(folder)

    def _clear_leftovers(self) -> None:
        if (self.root / "go.distrusted").exists():
            remove_tree(self.go_caches())
            (self.root / "go.distrusted").unlink()
            self.report("Go's caches gave a wrong result in an earlier run; they were removed")
        leftovers = sorted((self.root / "work").glob("*"))
        for folder in leftovers:
            remove_tree(folder)
        if leftovers:
            names = ", ".join(sorted({folder.name.split(".")[0] for folder in leftovers}))
            self.report(f"an earlier run was interrupted while working on {names}; its drafts were removed")

    def go_caches(self) -> Path:
        """Go's own module and build caches; they only save time, and may be removed between runs."""
        return self.root / "go"

    def distrust_go_caches(self) -> None:
        """Have the next run start without Go's caches. This run's other builds may still be using them."""
        write_file(self.root / "go.distrusted", b"")

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.root).free


class DigestMismatchError(FalseworkError):
    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(f"expected sha256:{expected}, got sha256:{actual}")
        self.expected = expected
        self.actual = actual
