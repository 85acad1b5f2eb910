"""Tar archives that come out the same wherever and whenever they are written."""

from __future__ import annotations

import copy
import io
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True)
class Entry:
    """A member of an archive; a file's content is opened only when it is written."""

    info: tarfile.TarInfo
    content: bytes | Path | IO[bytes] | None = None


def file_entry(name: str, content: bytes | Path, epoch: int, mode: int = 0o644) -> Entry:
    info = _info(name, tarfile.REGTYPE, epoch, mode)
    info.size = content.stat().st_size if isinstance(content, Path) else len(content)
    return Entry(info, content)


def folder_entry(name: str, epoch: int, mode: int = 0o755) -> Entry:
    return Entry(_info(name, tarfile.DIRTYPE, epoch, mode))


def link_entry(name: str, target: str, epoch: int) -> Entry:
    info = _info(name, tarfile.SYMTYPE, epoch, 0o777)
    info.linkname = target
    return Entry(info)


def _info(name: str, kind: bytes, epoch: int, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name.strip("/"))
    info.type = kind
    info.mode = mode
    info.mtime = epoch
    return info


def entries_of(archive: tarfile.TarFile, epoch: int) -> Iterator[Entry]:
    """The members of an archive without what differs from build to build; ownership is by number."""
    for member in archive:
        info = copy.copy(member)
        info.name = member.name.removeprefix("./") or "."
        info.linkname = member.linkname.removeprefix("./") if member.islnk() else member.linkname
        info.mtime = min(int(member.mtime), epoch)
        info.uname = info.gname = ""
        # Extended attributes (file capabilities) stay; the archive's own records of times do not.
        info.pax_headers = {key: value for key, value in member.pax_headers.items() if key.startswith("SCHILY.xattr.")}
        yield Entry(info, archive.extractfile(member) if member.isreg() else None)


def write_tar(target: Path, entries: Iterable[Entry]) -> None:
    """Write entries folder by folder in the order of their names. Of two with one name the later one counts."""
    by_name = {entry.info.name: entry for entry in entries}
    with tarfile.TarFile(target, "w", format=tarfile.PAX_FORMAT, encoding="utf-8", copybufsize=1 << 20) as archive:
        for name in sorted(by_name, key=lambda name: name.split("/")):
            entry = by_name[name]
            if entry.content is None:
                archive.addfile(entry.info)
                continue
            with _opened(entry.content) as content:
                archive.addfile(entry.info, content)


def _opened(content: bytes | Path | IO[bytes]) -> IO[bytes]:
    if isinstance(content, bytes):
        return io.BytesIO(content)
    return content.open("rb") if isinstance(content, Path) else content
