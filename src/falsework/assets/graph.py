"""Assets as a graph: each is made from declared inputs, and only when one of them has changed.

The folder is the truth, the state file beside it is the memory: from which inputs an asset was made, what
was written, and when it expires. A file that is not what was written has been changed by a person. It is
used as it is, and never overwritten.

Everything is made before anything is written. The state names the files about to change before the first
of them does, so that a run killed half-way is told apart from a person's edits by the next one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from falsework.assets.pki import Life, utc_now
from falsework.errors import FalseworkError, UsageError
from falsework.files import only_one, write_file

STATE_FILE = ".falsework-state.json"
_WRITERS = 16
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")

T = TypeVar("T")
Files = dict[str, bytes]
"""Path below the asset folder → content."""


@dataclass(frozen=True)
class Asset:
    name: str
    make: Callable[[Given], Files]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Every value it is made from that is no asset: fields of the site, constants of the release."""
    needs: tuple[str, ...] = ()
    """The assets it is made from."""
    folders: tuple[str, ...] = ()
    """Folders it takes whole, with what a person added to them."""
    once: bool = False
    """Made by chance (a key, a password): kept as long as its inputs stay the same and it does not expire."""
    editable: bool = False
    """A person may delete its files, and they stay deleted."""
    life: Callable[[Files], Life] | None = None
    check: Callable[[Files], None] | None = None
    """ValueError if files that a person put in place of ours cannot be used."""


@dataclass(frozen=True)
class Record:
    """What is remembered of an asset."""

    inputs: dict[str, str]
    files: dict[str, str]
    """Path → sha256 of what Falsework made; empty for a file that was there before."""
    begins: str | None = None
    expires: str | None = None
    renew: str | None = None


@dataclass(frozen=True)
class Report:
    """What a run did."""

    made: dict[str, str] = field(default_factory=dict)
    """Asset → why it was made."""
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    """Files that a person changed, added or deleted, and that were used so."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    assets: dict[str, Record] = field(default_factory=dict)
    pending: dict[str, list[str | None]] = field(default_factory=dict)
    """Path → sha256 before and after a change that had begun: None where there is no file."""

    @classmethod
    def load(cls, folder: Path) -> State:
        path = folder / STATE_FILE
        try:
            data = json.loads(path.read_bytes())
            return cls({name: Record(**entry) for name, entry in data["assets"].items()}, data["pending"])
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FalseworkError(
                f"{path} cannot be read",
                cause="it was changed by something else than Falsework",
                fix=f"remove it and run this again; the files in {folder} are then taken as yours and kept",
            ) from None

    def save(self, folder: Path) -> None:
        """One asset a line: quick to write, and `grep` finds what a person asks for."""
        lines = (f"{json.dumps(name)}: {json.dumps(vars(record))}" for name, record in self.assets.items())
        text = '{"assets": {\n' + ",\n".join(lines) + '\n},\n"pending": ' + json.dumps(self.pending) + "}\n"
        write_file(folder / STATE_FILE, text.encode(), 0o600)


class Given:
    """What an asset's maker may look at: exactly what it declares."""

    def __init__(self, asset: Asset, run: _Run) -> None:
        self._asset = asset
        self._run = run
        self.now = run.now

    def files(self, name: str) -> Files:
        """The files of an asset, as they are in use."""
        assert name in self._asset.needs, f"{self._asset.name} reads {name}, which it does not declare"
        return self._run.files_of(name)

    def file(self, name: str) -> bytes:
        """The content of an asset that is one file."""
        (content,) = self.files(name).values()
        return content

    def parsed(self, name: str, parse: Callable[[Files], T]) -> T:
        """The same, read into something better; done once in a run, however many assets ask."""
        assert name in self._asset.needs, f"{self._asset.name} reads {name}, which it does not declare"
        return self._run.parsed(name, parse)

    def folder(self, folder: str) -> Files:
        assert folder in self._asset.folders, f"{self._asset.name} reads {folder}/, which it does not declare"
        return self._run.in_folder(folder)


class Graph:
    def __init__(self, assets: Iterable[Asset], folder: Path, clock: Callable[[], datetime] = utc_now) -> None:
        """`assets` in an order in which each comes after those it needs."""
        self.assets = {asset.name: asset for asset in assets}
        self.folder = folder
        self.clock = clock

    def bring_up_to_date(self, targets: Iterable[str], when_busy: Callable[[str], None] = print) -> Report:
        """Make the targets and what they need, as far as it is missing, outdated or about to expire."""
        with _explained(self.folder):
            _private_folder(self.folder)
            with _alone_in(self.folder, when_busy):
                run = _Run(self, self._closure(targets))
                report = run.go()
                run.commit()
                return report

    def preview(self, targets: Iterable[str]) -> Report:
        """What `bring_up_to_date` would do now. Touches nothing."""
        with _explained(self.folder):
            return _Run(self, self._closure(targets)).go()

    def _closure(self, targets: Iterable[str]) -> list[Asset]:
        wanted: set[str] = set()
        queue = list(targets)
        while queue:
            name = queue.pop()
            if name not in wanted:
                wanted.add(name)
                asset = self.assets[name]
                queue += asset.needs
                if asset.folders:
                    queue += (other.name for other in self.assets.values() if _lies_in(other, asset.folders))
        return [asset for asset in self.assets.values() if asset.name in wanted]


def _lies_in(asset: Asset, folders: tuple[str, ...]) -> bool:
    """An asset that takes a folder whole needs everything that is made into it. Names of assets are paths there."""
    return any(asset.name.startswith(f"{folder}/") for folder in folders)


class _Run:
    """One pass over the graph. Only `commit` changes anything."""

    def __init__(self, graph: Graph, wanted: list[Asset]) -> None:
        self.graph = graph
        self.folder = graph.folder
        self.wanted = wanted
        self.now = graph.clock()
        self.state = State.load(graph.folder)
        self.records = dict(self.state.assets)
        self.writes: Files = {}
        self.removes: dict[str, str] = {}
        """Path → sha256 of what is there now."""
        self.made: dict[str, str] = {}
        self.edited: list[str] = []
        self.warnings: list[str] = []
        self._disk: dict[str, str | None] = {}
        self._digests: dict[str, str] = {}
        self._expires: dict[str, str | None] = {}
        self._parsed: dict[tuple[str, object], Any] = {}
        self._listed: dict[str, list[str]] = {}

    def go(self) -> Report:
        for name in self.state.assets.keys() - self.graph.assets.keys():
            self._drop(name)
        for asset in self.wanted:
            self._visit(asset)
        self._retire_orphans()
        return Report(
            self.made, tuple(sorted(self.writes)), tuple(self.removes), tuple(self.edited), tuple(self.warnings)
        )

    # One asset

    def _visit(self, asset: Asset) -> None:
        record = self.records.get(asset.name)
        inputs = self._inputs(asset)
        why = self._why(asset, record, inputs)
        theirs = self._theirs(asset, record)
        if asset.once and theirs:
            assert record is not None
            self._use_theirs(asset, record, inputs, theirs, why)
        elif why is None:
            assert record is not None
            self.edited += theirs
            self._expires[asset.name] = record.expires
        else:
            self._make(asset, record, inputs, why)

    def _inputs(self, asset: Asset) -> dict[str, str]:
        inputs = {} if asset.once else {"falsework": _makers()}
        inputs |= {f"site: {name}": _digest_of(value) for name, value in asset.facts.items()}
        inputs |= {name: self._digest(name) for name in asset.needs}
        for folder in asset.folders:
            inputs[f"{folder}/"] = _digest_of({path: self._sha(path) for path in self._paths_in(folder)})
        return inputs

    def _why(self, asset: Asset, record: Record | None, inputs: dict[str, str]) -> str | None:
        """Why it has to be made, or None if it need not."""
        if record is None:
            return "new"
        if changed := sorted(
            key for key in inputs.keys() | record.inputs.keys() if inputs.get(key) != record.inputs.get(key)
        ):
            return f"changed: {', '.join(changed[:3])}{' …' if len(changed) > 3 else ''}"
        if record.begins and self.now < datetime.fromisoformat(record.begins):
            return f"not valid before {record.begins}"
        if record.renew and datetime.fromisoformat(record.renew) <= self.now:
            return f"expires {record.expires}"
        if self.state.pending.keys() & record.files.keys():
            return "an earlier run was interrupted"
        for path in record.files:
            if self._on_disk(path) is None and not self._deleted_by_them(asset, path, record):
                return f"{path} is gone"
        return None

    def _theirs(self, asset: Asset, record: Record | None) -> list[str]:
        """Of the files the asset is known to have, those that a person changed or deleted."""
        if record is None:
            return []
        return [
            path
            for path in record.files
            if (
                self._deleted_by_them(asset, path, record)
                if self._on_disk(path) is None
                else not self._ours(path, record)
            )
        ]

    def _ours(self, path: str, record: Record | None) -> bool:
        """Whether what is on disk was written by Falsework (a file that is not there never was a person's)."""
        found = self._on_disk(path)
        known = {None, record.files.get(path) if record else None, *self.state.pending.get(path, ())}
        return found in known

    def _deleted_by_them(self, asset: Asset, path: str, record: Record) -> bool:
        """Deleting single files of an editable asset is an edit; deleting their whole folder is a fresh start."""
        return (
            asset.editable
            and path in record.files
            and None not in self.state.pending.get(path, ())
            and (self.folder / path).parent.is_dir()
        )

    def _use_theirs(
        self, asset: Asset, record: Record, inputs: dict[str, str], theirs: list[str], why: str | None
    ) -> None:
        """Something made once was replaced by a person: their key, their password. It is used whole or not at all."""
        self.edited += theirs
        there = [path for path in record.files if self._on_disk(path)]
        if there and len(there) < len(record.files):
            gone = next(path for path in record.files if path not in there)
            raise UsageError(
                f"{self.folder / gone} is missing, but {there[0]}, which belongs to it, was put there by hand",
                fix=f"put it there, or remove {there[0]} too and run this again: both are then made anew",
            )
        life = self._checked(asset, {path: self._content(path) for path in there}) if there else None
        if why is not None:
            self.warnings.append(f"{', '.join(theirs)}: changed by hand and kept; it would be made anew ({why})")
        self._remember(asset, _record(inputs, record.files, life, None))

    def _checked(self, asset: Asset, files: Files) -> Life | None:
        names = ", ".join(files)
        try:
            if asset.check:
                asset.check(files)
            life = asset.life(files) if asset.life else None
        except (ValueError, KeyError) as error:
            raise UsageError(
                f"{names} in {self.folder} cannot be used: {error}",
                cause="changed by hand, or damaged",
                fix="put it right, or remove it and run this again: it is then made anew",
            ) from None
        if life and life.ends <= self.now:
            raise UsageError(
                f"{names} in {self.folder} expired on {life.ends:%Y-%m-%d %H:%M} UTC",
                cause="it was put there by hand, so it is not replaced without being asked",
                fix="put a new one there, or remove it and run this again: it is then made anew",
            )
        return life

    def _make(self, asset: Asset, record: Record | None, inputs: dict[str, str], why: str) -> None:
        files = asset.make(Given(asset, self))
        if asset.once and record is None and not all(self._ours(path, None) for path in files):
            self._use_theirs(asset, Record(inputs, dict.fromkeys(files, "")), inputs, list(files), None)
            return
        self.made[asset.name] = why
        for path, content in files.items():
            self._settle(asset, record, path, content)
        if record:
            for path in record.files.keys() - files.keys():
                self._retire(path, record)
        life = asset.life(files) if asset.life else None
        hashes = {path: _sha256(content) for path, content in files.items()}
        self._remember(asset, _record(inputs, hashes, life, self._first_to_expire(asset)))

    def _settle(self, asset: Asset, record: Record | None, path: str, content: bytes) -> None:
        """Write a file, unless it is there already or a person's."""
        found, new = self._on_disk(path), _sha256(content)
        if found == new:
            return
        before = record.files.get(path) if record else None
        if found is None and record and self._deleted_by_them(asset, path, record):
            self.edited.append(path)
            if before != new:
                self.warnings.append(f"{path}: deleted by hand and left so; what would be in it has changed")
        elif self._ours(path, record):
            self.writes[path] = content
        else:
            self.edited.append(path)
            if before is None:
                self.warnings.append(f"{path}: was there before and is kept; remove it to have it made")
            elif before != new:
                self.warnings.append(f"{path}: changed by hand and kept; what would be in it has changed")

    def _retire(self, path: str, record: Record) -> None:
        """Remove a file that is no longer made, unless it is a person's now."""
        found = self._on_disk(path)
        if found is None:
            return
        if self._ours(path, record):
            self.removes[path] = found
            self._disk[path] = None
        else:
            self.warnings.append(f"{path}: no longer made, but changed by hand, so it is kept")

    def _drop(self, name: str) -> None:
        record = self.records.pop(name)
        for path in record.files:
            self._retire(path, record)

    def _retire_orphans(self) -> None:
        """What a first run wrote before it was killed, and nothing makes any more."""
        recorded = {path for record in self.records.values() for path in record.files}
        for path in self.state.pending.keys() - recorded:
            if self._on_disk(path) in self.state.pending[path]:
                self._retire(path, Record({}, {}))

    def _remember(self, asset: Asset, record: Record) -> None:
        self.records[asset.name] = record
        self._expires[asset.name] = record.expires

    def _first_to_expire(self, asset: Asset) -> str | None:
        """Nothing is good for longer than what is in it."""
        needs = list(asset.needs)
        if asset.folders:
            needs += (name for name in self._expires if _lies_in(self.graph.assets[name], asset.folders))
        return min((ends for name in needs if (ends := self._expires[name])), default=None)

    # What is there

    def _on_disk(self, path: str) -> str | None:
        if path not in self._disk:
            try:
                self._disk[path] = _sha256((self.folder / path).read_bytes())
            except (FileNotFoundError, NotADirectoryError):
                self._disk[path] = None
        return self._disk[path]

    def _sha(self, path: str) -> str | None:
        """Of the content in use: just made, else on disk."""
        return _sha256(self.writes[path]) if path in self.writes else self._on_disk(path)

    def _content(self, path: str) -> bytes:
        return self.writes[path] if path in self.writes else (self.folder / path).read_bytes()

    def _digest(self, name: str) -> str:
        if name not in self._digests:
            self._digests[name] = _digest_of({path: self._sha(path) for path in sorted(self.records[name].files)})
        return self._digests[name]

    def files_of(self, name: str) -> Files:
        return {path: self._content(path) for path in self.records[name].files if self._sha(path)}

    def parsed(self, name: str, parse: Callable[[Files], T]) -> T:
        if (name, parse) not in self._parsed:
            self._parsed[name, parse] = parse(self.files_of(name))
        result: T = self._parsed[name, parse]
        return result

    def in_folder(self, folder: str) -> Files:
        return {path: self._content(path) for path in self._paths_in(folder)}

    def _paths_in(self, folder: str) -> list[str]:
        """Manifests in a folder, whoever put them there. Asked for when everything in it has been visited."""
        if folder not in self._listed:
            self._listed[folder] = self._list(folder)
        return self._listed[folder]

    def _list(self, folder: str) -> list[str]:
        paths = {path for path in self.writes if path.startswith(f"{folder}/")}
        for entry in (self.folder / folder).glob("*"):
            path = f"{folder}/{entry.name}"
            if entry.name.startswith(".") or not entry.is_file() or path in self.removes:
                continue
            if entry.suffix in MANIFEST_SUFFIXES:
                paths.add(path)
            else:
                self.warnings.append(f"{path}: left out; manifests end in {', '.join(MANIFEST_SUFFIXES)}")
        made = {path for record in self.records.values() for path in record.files}
        self.edited += sorted(paths - made)
        return sorted(paths)

    # Changing it

    def commit(self) -> None:
        self._clear_drafts()
        if self.writes or self.removes:
            pending: dict[str, list[str | None]] = {
                path: [self._on_disk(path), _sha256(content)] for path, content in self.writes.items()
            }
            pending |= {path: [found, None] for path, found in self.removes.items()}
            State(self.state.assets, self.state.pending | pending).save(self.folder)
            for parent in {(self.folder / path).parent for path in self.writes}:
                _private_folder(parent)
            with ThreadPoolExecutor(_WRITERS) as pool:
                # Waiting for the disk is most of the work, and the disk likes to be asked for many files at once.
                for _ in pool.map(self._write, self.writes):
                    pass
            for path in self.removes:
                (self.folder / path).unlink(missing_ok=True)
                self._remove_empty(Path(path).parent)
        unsettled = self._not_reached()
        done = State(self.records, {path: sums for path, sums in self.state.pending.items() if path in unsettled})
        if self.writes or self.removes or done != self.state:
            done.save(self.folder)

    def _write(self, path: str) -> None:
        write_file(self.folder / path, self.writes[path], 0o600)

    def _remove_empty(self, parent: Path) -> None:
        """Folders that have nothing in them any more, up to ours, which stays."""
        with contextlib.suppress(OSError):
            while parent != Path():
                (self.folder / parent).rmdir()
                parent = parent.parent

    def _not_reached(self) -> set[str]:
        """Files of assets that this run had no reason to look at."""
        visited = {asset.name for asset in self.wanted}
        return {path for name, record in self.records.items() if name not in visited for path in record.files}

    def _clear_drafts(self) -> None:
        """A killed run leaves the draft of the file it was writing."""
        names = {self.folder / path for path in self.state.pending} | {self.folder / STATE_FILE}
        for path in names:
            for draft in path.parent.glob(f".{path.name}.????????"):
                draft.unlink(missing_ok=True)


def remove_made(folder: Path, when_busy: Callable[[str], None] = print) -> tuple[list[str], list[str]]:
    """Remove the files Falsework made, as far as they are still what it wrote; return what went and what was kept.

    The state goes last, so that it may be killed and called again.
    """
    if not (folder / STATE_FILE).exists():
        return [], []
    with _explained(folder), _alone_in(folder, when_busy):
        run = _Run(Graph((), folder), [])
        run.go()
        run.commit()
        there = {path for record in run.state.assets.values() for path in record.files if (folder / path).exists()}
        (folder / STATE_FILE).unlink()
        return sorted(run.removes), sorted(there)


def _record(inputs: dict[str, str], files: dict[str, str], life: Life | None, expires: str | None) -> Record:
    if life is None:
        return Record(inputs, files, expires=expires)
    return Record(inputs, files, life.begins.isoformat(), life.ends.isoformat(), life.renew_at.isoformat())


def _private_folder(folder: Path) -> None:
    if not folder.is_dir():
        _private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or folder
        raise FalseworkError(
            f"{place}: {error.strerror}",
            cause="the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else None,
            fix="mend that and run the same command again; no file is half written",
        ) from None


def _alone_in(folder: Path, when_busy: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
    """The folder itself is the lock: no file of its own is needed."""
    return only_one(folder, lambda owner: when_busy(f"{owner} is at work in {folder}; waiting for it"))


@cache
def _makers() -> str:
    """The code that makes assets is an input like any other: a new Falsework makes them anew."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return _sha256(b"\0".join(path.read_bytes() for path in sources))[:16]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(value: Any) -> str:
    return _sha256(json.dumps(value, sort_keys=True, default=_plain).encode())[:16]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return str(value)
