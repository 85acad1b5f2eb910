"""Ignition configs, spec 3.2: typed builders, and merging as Ignition itself does it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

SPEC = "3.2.0"
Config = dict[str, Any]

_KEYS = ("path", "name", "device", "source")
"""What entries of lists are told apart by, in the order in which it is looked for."""


@dataclass(frozen=True)
class File:
    path: str
    content: bytes
    mode: int = 0o644
    group: str | None = None

    def entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "path": self.path,
            "overwrite": True,
            "user": {"name": "root"},
            "mode": self.mode,
            "contents": {"source": data_url(self.content)},
        }
        if self.group:
            entry["group"] = {"name": self.group}
        return entry


@dataclass(frozen=True)
class Link:
    path: str
    target: str

    def entry(self) -> dict[str, Any]:
        return {"path": self.path, "target": self.target, "overwrite": True, "hard": False}


@dataclass(frozen=True)
class Unit:
    name: str
    contents: str | None = None
    enabled: bool | None = None
    dropins: Mapping[str, str] | None = None

    def entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": self.name}
        if self.enabled is not None:
            entry["enabled"] = self.enabled
        if self.contents is not None:
            entry["contents"] = self.contents
        if self.dropins:
            entry["dropins"] = [{"name": name, "contents": text} for name, text in self.dropins.items()]
        return entry


def config(
    *,
    files: Sequence[File] = (),
    links: Sequence[Link] = (),
    units: Sequence[Unit] = (),
    ssh_keys: Mapping[str, Sequence[str]] | None = None,
    merge: Sequence[str] = (),
    authorities: Sequence[bytes] = (),
) -> Config:
    """A config with exactly what is given: Ignition takes an empty section for a mistake in some places."""
    ignition: dict[str, Any] = {"version": SPEC}
    if merge:
        ignition["config"] = {"merge": [{"source": source} for source in merge]}
    if authorities:
        sources = [{"source": data_url(authority)} for authority in authorities]
        ignition["security"] = {"tls": {"certificateAuthorities": sources}}
    result: Config = {"ignition": ignition}
    if ssh_keys and any(ssh_keys.values()):
        users = [{"name": user, "sshAuthorizedKeys": list(keys)} for user, keys in ssh_keys.items() if keys]
        result["passwd"] = {"users": users}
    if files or links:
        storage: dict[str, Any] = {}
        if files:
            storage["files"] = [file.entry() for file in files]
        if links:
            storage["links"] = [link.entry() for link in links]
        result["storage"] = storage
    if units:
        result["systemd"] = {"units": [unit.entry() for unit in units]}
    return result


def data_url(content: bytes) -> str:
    return f"data:text/plain;charset=utf-8;base64,{base64.b64encode(content).decode()}"


def content_of(url: str) -> bytes:
    """What a data URL says; ValueError for any other URL."""
    head, comma, body = url.partition(",")
    if not head.startswith("data:") or not comma:
        raise ValueError("not a data URL")
    try:
        return base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
    except binascii.Error as error:
        raise ValueError(f"not a data URL: {error}") from None


def files_in(config: Config) -> dict[str, bytes]:
    """Path → content of the files a config carries itself."""
    return {
        entry["path"]: content_of(entry["contents"]["source"])
        for entry in config.get("storage", {}).get("files", [])
        if entry.get("contents", {}).get("source", "").startswith("data:")
    }


def merge(parent: Config, child: Config) -> Config:
    """Both in one; where they differ, the child's wins. Neither is changed."""
    result = dict(parent)
    for key, value in child.items():
        mine = result.get(key)
        if isinstance(mine, dict) and isinstance(value, dict):
            result[key] = value if key == "contents" else merge(mine, value)
        elif isinstance(mine, list) and isinstance(value, list):
            result[key] = _merged_list(mine, value)
        else:
            result[key] = value
    return result


def _merged_list(mine: list[Any], theirs: list[Any]) -> list[Any]:
    """Entries for the same path, name or device become one; plain values are joined without repeating any."""
    result = list(mine)
    places = {_identity(entry): place for place, entry in enumerate(result)}
    for entry in theirs:
        place = places.get(_identity(entry))
        if place is None:
            places[_identity(entry)] = len(result)
            result.append(entry)
        elif isinstance(entry, dict):
            result[place] = merge(result[place], entry)
    return result


def _identity(entry: Any) -> tuple[str, str]:
    if isinstance(entry, dict):
        key = next((key for key in _KEYS if key in entry), None)
        return (key, str(entry[key])) if key else ("", str(entry))
    return ("value", str(entry))
