"""What the release is made of: `payload.toml` says what, `payload.lock.json` with which result."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODULES = HERE / "modules"
LOCK_FILE = HERE / "payload.lock.json"

# Where images say they come from. It is no address: every machine is told which registry stands for it.
REGISTRY = "registry.falsework.internal"


def repository_of(image: str) -> str:
    return f"{REGISTRY}/release/{image}"


@dataclass(frozen=True)
class Toolchain:
    """A compiler that comes as one file from the Python package index, pinned by its hash."""

    package: str
    version: str
    sha256: str


@dataclass(frozen=True)
class GoUnit:
    """Programs built together from one pinned Go module graph (`modules/<name>/go.mod` and `go.sum`)."""

    name: str
    version: str
    modules: tuple[str, ...]
    """The upstream modules that have this version."""
    binaries: dict[str, str]
    """Program name → Go package."""
    tests: dict[str, str] = field(default_factory=dict)
    """Program name → Go package whose tests are the program."""
    files: dict[str, str] = field(default_factory=dict)
    """Name → file of the first module that comes along as it is."""
    aligned: bool = False
    """Whether modules shared with Kubernetes are raised to the versions Kubernetes has."""
    tags: tuple[str, ...] = ()
    stamps: dict[str, str] = field(default_factory=dict)
    """Go variables set at link time."""
    linking: str = "go"
    """`go`: no C code, static. `dynamic`: with C code, against the OS image's libraries."""
    without: tuple[str, ...] = ()
    """Packages of the first module that are compiled as if they were empty."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is built, by name."""
        return (*self.binaries, *self.tests, *self.files)

    @property
    def source(self) -> str:
        return f"go:{self.name}@{self.version}"


@dataclass(frozen=True)
class CProgram:
    """A program compiled from one C file that a Go unit's module carries."""

    name: str
    version: str
    unit: str
    module: str
    file: str

    @property
    def source(self) -> str:
        return f"c:{self.module}/{self.file}@{self.version}"


@dataclass(frozen=True)
class DebianRoot:
    """A root file system of Debian packages: installed, or (`extract`) only unpacked."""

    name: str
    suite: str
    variant: str
    include: tuple[str, ...]
    without: tuple[str, ...] = ()
    """How the names of files begin that are left out."""

    @property
    def version(self) -> str:
        return self.suite

    @property
    def source(self) -> str:
        return f"debian:{self.suite}"


@dataclass(frozen=True)
class ImageSpec:
    """A container image: an optional Debian root, programs in /usr/bin, and what to start."""

    name: str
    version: str
    programs: tuple[str, ...]
    entrypoint: tuple[str, ...]
    base: str | None = None
    certificates: bool = False
    stop_signal: str = ""
    """What asks it to end, if not SIGTERM."""


@dataclass(frozen=True)
class Pin:
    sha256: str
    size: int


@dataclass(frozen=True)
class Payload:
    version: str
    epoch: int
    toolchain: Toolchain
    go_units: dict[str, GoUnit]
    c_programs: dict[str, CProgram]
    debian_roots: dict[str, DebianRoot]
    images: dict[str, ImageSpec]
    os_programs: dict[str, str]
    """Program name → its place in the OS image."""
    pins: dict[str, Pin]
    packages: dict[str, dict[str, str]]
    """Debian root → package → `version sha256` when the pin was made."""

    def go_unit_of(self, binary: str) -> GoUnit:
        return next(unit for unit in self.go_units.values() if binary in unit.binaries)


@cache
def load_payload() -> Payload:
    return parse_payload(tomllib.loads((HERE / "payload.toml").read_text()), json.loads(LOCK_FILE.read_text()))


def parse_payload(what: dict[str, Any], lock: dict[str, Any]) -> Payload:
    units = {name: GoUnit(name=name, **_tupled(entry)) for name, entry in what["go"].items()}
    c_programs = {name: CProgram(name=name, **entry) for name, entry in what["c"].items()}
    versions = {binary: unit.version for unit in units.values() for binary in unit.binaries}
    versions |= {program.name: program.version for program in c_programs.values()}
    images = {}
    for name, entry in what["image"].items():
        programs = tuple(entry.get("programs", [name]))
        images[name] = ImageSpec(
            name=name,
            version=versions[programs[0]] if programs else what["debian"]["suite"],
            programs=programs,
            entrypoint=(entry.get("start") or f"/usr/bin/{programs[0]}",),
            base=entry.get("base"),
            certificates=entry.get("certificates", False),
            stop_signal=entry.get("stop_signal", ""),
        )
    return Payload(
        version=what["version"],
        epoch=what["epoch"],
        toolchain=Toolchain(**what["toolchain"]),
        go_units=units,
        c_programs=c_programs,
        debian_roots={
            name: DebianRoot(name=name, suite=what["debian"]["suite"], **_tupled(entry))
            for name, entry in what["debian"]["root"].items()
        },
        images=images,
        os_programs={
            program: f"{folder}/{program}"
            for folder, programs in what["os"]["programs"].items()
            for program in programs
        },
        pins={name: Pin(**entry) for name, entry in lock["pins"].items()},
        packages=lock["packages"],
    )


def _tupled(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
