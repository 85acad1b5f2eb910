"""Data to bytes, always the same bytes for the same data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

import yaml

from falsework.assets.plain_json import to_json as to_json
from falsework.errors import UsageError

# The C versions are ten times faster; a PyYAML built without libyaml has only the others, with the same result.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Dumper(_DUMPER):  # type: ignore[misc]
    """Text of several lines as a block, so that certificates and configs can be read; and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - as PyYAML calls it
        return True


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(StrEnum, lambda dumper, member: _text(dumper, str(member)))


def to_yaml(*documents: Any) -> bytes:
    text = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        width=1000,
        explicit_start=len(documents) > 1,
    )
    return str(text).encode()


@lru_cache(maxsize=256)
def documents_in(path: str, content: bytes) -> tuple[dict[str, Any], ...]:
    """The objects of a manifest, a person's perhaps: one document after the other, lists taken apart.

    To be looked at, not changed: several configs are made from the same manifests.
    """
    try:
        documents = [document for document in yaml.load_all(content, Loader=_LOADER) if document is not None]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        raise UsageError(
            f"{where} is no valid YAML: {getattr(error, 'problem', None) or error}",
            fix="put it right, or remove the file, and run this again",
        ) from None
    found: list[dict[str, Any]] = []
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise UsageError(
                f"{path} is no manifest", cause="an object needs apiVersion, kind and metadata", fix="put it right"
            )
        found += document["items"] if document["kind"] == "List" and "items" in document else [document]
    return tuple(found)


def to_unit(**sections: Mapping[str, str | list[str]]) -> str:
    """A systemd unit; a list gives a key several times."""
    blocks = []
    for name, settings in sections.items():
        lines = [f"[{name}]"]
        for key, value in settings.items():
            lines += [f"{key}={line}" for line in ([value] if isinstance(value, str) else value)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def to_toml(data: dict[str, Any]) -> bytes:
    """Tables of texts, numbers, truth values and lists of texts: what containerd's config needs."""
    return "\n".join(_toml_lines(data, ())).encode() + b"\n"


def _toml_lines(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    # JSON writes texts, numbers, truth values and lists of them exactly as TOML does.
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, dict)]
    if path and lines:
        lines.insert(0, f"[{'.'.join(json.dumps(part) for part in path)}]")
    for key, value in table.items():
        if isinstance(value, dict):
            lines += ["", *_toml_lines(value, (*path, key))] if lines else _toml_lines(value, (*path, key))
    return lines
