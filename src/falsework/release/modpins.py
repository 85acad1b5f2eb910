"""Writing a unit's go.mod and go.sum after its version was changed in the payload."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from falsework.process import run
from falsework.release.gobuild import network_env
from falsework.release.payload import MODULES, GoUnit, Payload

_KUBERNETES = "kubernetes"


def pin_modules(unit: GoUnit, payload: Payload, goroot: Path, caches: Path) -> None:
    """Require the unit's modules in its version, and pin what they need. What else go.mod says (replacements made
    by hand) stays."""
    folder = MODULES / unit.name
    folder.mkdir(exist_ok=True)
    env = network_env(goroot, caches)

    def go(*words: str) -> str:
        return run((goroot / "bin" / "go", *words), cwd=folder, only_env=env, silence_limit=300.0).output

    if not (folder / "go.mod").exists():
        go("mod", "init", f"falsework.internal/release/{unit.name}")
    requirements = [f"-require={module}@v{unit.version}" for module in unit.modules]
    # Programs of our own are found by their main.go; those of others have to be named, or tidying drops them.
    programs = [f"-tool={package}" for package in (unit.binaries | unit.tests).values() if not _is_own(package)]
    go("mod", "edit", *requirements, *programs)
    for module in unit.modules:
        if staged := _staged(json.loads(go("mod", "download", "-json", f"{module}@v{unit.version}"))):
            version = f"v0.{unit.version.split('.', 1)[1]}"
            go("mod", "edit", *(f"-replace={name}={name}@{version}" for name in staged))
    go("mod", "tidy")
    if unit.aligned:
        while newer := _newer_in_kubernetes(folder, payload.go_units[_KUBERNETES]):
            go("mod", "edit", *(f"-require={name}@{version}" for name, version in newer.items()))
            go("mod", "tidy")


def _is_own(package: str) -> bool:
    return package.startswith("falsework.internal/")


def _staged(module: dict[str, Any]) -> list[str]:
    """Modules that live in the same repository and are required as v0.0.0: upstream replaces them by folders."""
    return re.findall(r"^\s*(?:require )?(\S+) v0\.0\.0$", Path(module["GoMod"]).read_text(), re.MULTILINE)


def _newer_in_kubernetes(folder: Path, kubernetes: GoUnit) -> dict[str, str]:
    ours, theirs = (_required(path / "go.mod") for path in (folder, MODULES / kubernetes.name))
    return {
        name: theirs[name]
        for name, version in ours.items()
        if name in theirs and _order_of(version) < _order_of(theirs[name])
    }


def _required(file: Path) -> dict[str, str]:
    text = file.read_text().split("\nreplace ")[0]
    return dict(re.findall(r"^(?:require |\t)(\S+) (v\S+)", text, re.MULTILINE))


def _order_of(version: str) -> list[int]:
    return [int(word) if word.isdigit() else -1 for word in re.split(r"[.+-]", version.removeprefix("v"))]
