"""Writing so that a kill at any moment leaves the old file or the new one, never half of either."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from falsework.errors import FalseworkError

CHUNK = 1 << 20


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def new_file(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def is_draft(name: str) -> bool:
    """Whether that is what a killed `new_file` left behind."""
    return re.fullmatch(r"\..+\.[a-z0-9_]{8}", name) is not None


def write_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    with new_file(path, mode) as file:
        file.write(content)


def write_lasting_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """When this is back, it is there whatever happens: its content is on the disk, and so is its name."""
    write_file(path, content, mode)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """What was put in this folder, renamed or removed there, stays so when the power fails."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def only_one(path: Path, when_busy: Callable[[str], None]) -> Iterator[None]:
    """Hold an exclusive lock while the block runs. `when_busy` is told who has it before we wait.

    `path` is a file, or a folder that stands for itself and in which nothing is written. The kernel drops the lock
    with the process, so a killed holder blocks nobody. Whoever holds a lock file may remove it.
    """
    descriptor = _lock(path, when_busy)
    try:
        if not path.is_dir():
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> str | None:
    """Who holds the lock now; None if it is free or was never taken. Touches nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _noted_holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _lock(path: Path, when_busy: Callable[[str], None]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                when_busy(_noted_holder(descriptor))
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The one we waited for may have removed the file: then this lock keeps nobody out.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _noted_holder(descriptor: int) -> str:
    with contextlib.suppress(IsADirectoryError):
        if noted := os.pread(descriptor, 100, 0).decode(errors="replace").strip():
            return noted
    return "another process"


def remove_tree(path: Path) -> None:
    """Remove a folder of ours, which may already be gone."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


@contextlib.contextmanager
def explained_disk_errors(folder: Path, need: str, setting: str = "FALSEWORK_CACHE") -> Iterator[None]:
    """Turn 'disk full' and 'not writable' below `folder` into a sentence that says what to do.

    `setting` is the environment variable that names another place for the folder.
    """
    try:
        yield
    except FalseworkError as error:
        # A program we ran met the full disk before we did.
        if "no space left on device" in str(error).lower():
            raise _disk_full(folder, need, setting) from None
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(folder, need, setting) from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM) and error.filename:
            raise FalseworkError(
                f"{error.filename} is not writable",
                cause=str(error.strerror),
                fix=f"run as root, or set {setting} to a folder of yours",
            ) from None
        raise


def _disk_full(folder: Path, need: str, setting: str) -> FalseworkError:
    return FalseworkError(
        f"the disk that holds {folder} is full",
        cause=need,
        fix=f"free some space or set {setting} to a folder on a larger disk, then run this again",
    )
