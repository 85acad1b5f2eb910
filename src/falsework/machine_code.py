"""Falsework's own code that runs in machines, as one file: `python3 falsework.pyz boot-server`.

In it are a machine's entry points, and what they import of Falsework; so it changes only when something that runs there
does.
"""

from __future__ import annotations

import ast
import io
import zipfile
from functools import cache
from pathlib import Path

from falsework.in_machine import ENTRY_POINTS

PATH = "/usr/local/lib/falsework.pyz"
"""Where it is in machines."""

_ROOT = Path(__file__).parents[1]
_STARTER = "falsework.in_machine"
_MAIN = f"import sys\n\nfrom {_STARTER} import main\n\nsys.exit(main(sys.argv[1:]))\n"
_TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest a zip archive knows: the same whenever it is made."""


def command(entry_point: str) -> tuple[str, ...]:
    """What runs in a machine. Isolated: nothing around the file has a say in what it imports."""
    assert entry_point in ENTRY_POINTS, entry_point
    return ("/usr/bin/python3", "-I", PATH, entry_point)


@cache
def machine_code(*entry_points: str) -> bytes:
    """For a machine that is started as these. The same bytes for the same code."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        files = {str(path.relative_to(_ROOT)): path.read_bytes() for path in modules(*entry_points).values()}
        for name, content in sorted({"__main__.py": _MAIN.encode(), **files}.items()):
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def modules(*entry_points: str) -> dict[str, Path]:
    """The modules in it, and their files."""
    found: dict[str, Path] = {}
    waiting = [_STARTER, *(ENTRY_POINTS[name] for name in entry_points)]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if name not in found and path is not None:
            found[name] = path
            waiting += [name.rpartition(".")[0], *imported_by(path)]
    return found


def imported_by(path: Path) -> set[str]:
    """Whatever a file imports, wherever in it; of `from a import b`, a and a.b, as b may be a module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}: Falsework imports by full names"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _file_of(name: str) -> Path | None:
    """A module of Falsework, or None."""
    if name.partition(".")[0] != "falsework":
        return None
    place = _ROOT.joinpath(*name.split("."))
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)
