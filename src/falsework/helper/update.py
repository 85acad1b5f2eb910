"""A running helper brought to what the site says now: only what differs is written, only those services are told.

What is in the machine is looked up, not remembered: a file that somebody changed in there is put right too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from falsework.assets.ignition import File
from falsework.helper.machine import LISTING, UNITS, HelperFiles
from falsework.helper.services import Service
from falsework.process import Finished

_PENDING = f"{LISTING}.pending"
"""The commands of a change under way, one a line: whoever finds it there runs them."""
_AT_ONCE = 200
"""Files asked for with one command: what it prints must not be cut off."""

Words = tuple[str, ...]


class Provider(Protocol):
    """What is needed of the provider of the helper machine."""

    def execute(self, name: str, words: Sequence[str]) -> Finished: ...

    def write_files(self, name: str, files: Sequence[File]) -> None: ...


@dataclass(frozen=True)
class Changes:
    """What is to be done, in this order."""

    stop: tuple[str, ...]
    """Units that are no longer wanted."""
    remove: tuple[str, ...]
    write: tuple[File, ...]
    commands: tuple[Words, ...]
    """Of systemctl: what makes the services see it."""

    def __bool__(self) -> bool:
        return bool(self.stop or self.remove or self.write or self.commands)


def pending_changes(wanted: HelperFiles, provider: Provider, name: str) -> Changes:
    """What `bring_up_to_date` would do now."""
    return changes_to(wanted, _present(wanted, provider, name), _pending(provider, name))


def bring_up_to_date(wanted: HelperFiles, provider: Provider, name: str) -> Changes:
    """Change what differs; return what that was. After a kill in between, the next call finishes it."""
    changes = pending_changes(wanted, provider, name)
    if not changes:
        return changes
    if changes.commands:
        told = "".join(f"{' '.join(words)}\n" for words in changes.commands)
        provider.write_files(name, [File(_PENDING, told.encode())])
    if changes.stop:
        provider.execute(name, ("systemctl", "disable", "--now", *changes.stop))
    if changes.remove:
        provider.execute(name, ("rm", "-f", "--", *changes.remove))
    if changes.write:
        provider.write_files(name, changes.write)
    for command in changes.commands:
        provider.execute(name, command)
    if changes.commands:
        provider.execute(name, ("rm", "-f", "--", _PENDING))
    return changes


def changes_to(wanted: HelperFiles, present: Mapping[str, str], pending: Sequence[Words] = ()) -> Changes:
    """`present` has the files of the machine, path → sha256: all that are wanted, and all that ever were."""
    files = wanted.all_files | wanted.unit_files
    write = [file for path, file in files.items() if present.get(path) != sha256(file.content).hexdigest()]
    # Last: if we are killed before, the old one still tells what there is.
    write.sort(key=lambda file: file.path == LISTING)
    gone = [path for path in present if path not in files]
    touched = {file.path for file in write}
    commands = [words for service in wanted.services for words in _told(service, touched, present)]
    if any(path.startswith(f"{UNITS}/") for path in (*touched, *gone)):
        commands.insert(0, ("systemctl", "daemon-reload"))
    stop = tuple(path.removeprefix(f"{UNITS}/") for path in gone if path.startswith(f"{UNITS}/"))
    return Changes(stop, tuple(gone), tuple(write), tuple(dict.fromkeys([*pending, *commands])))


def _told(service: Service, touched: set[str], present: Mapping[str, str]) -> list[Words]:
    unit = f"{UNITS}/{service.unit.name}"
    if unit in touched:
        enable = [] if unit in present else [("systemctl", "enable", service.unit.name)]
        return [*enable, ("systemctl", "restart", service.unit.name)]
    if touched & {file.path for file in service.files}:
        return [("systemctl", str(service.reaction), service.unit.name)]
    return []


def _present(wanted: HelperFiles, provider: Provider, name: str) -> dict[str, str]:
    paths = sorted({*_lines(provider, name, LISTING), *wanted.all_files, *wanted.unit_files})
    found: dict[str, str] = {}
    for start in range(0, len(paths), _AT_ONCE):
        # Files that are not there are what we want to know, no fault.
        words = ("sh", "-c", 'sha256sum -- "$@" 2>/dev/null || true', "sums", *paths[start : start + _AT_ONCE])
        lines = provider.execute(name, words).output.splitlines()
        found |= {path: digest for digest, _, path in (line.partition("  ") for line in lines)}
    return found


def _pending(provider: Provider, name: str) -> list[Words]:
    return [tuple(line.split()) for line in _lines(provider, name, _PENDING)]


def _lines(provider: Provider, name: str, path: str) -> list[str]:
    """Of a file that may not be there."""
    return provider.execute(name, ("sh", "-c", 'cat -- "$1" 2>/dev/null || true', "cat", path)).output.splitlines()
