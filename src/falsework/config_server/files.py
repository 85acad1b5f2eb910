"""Configs out of files: on the bootstrap machine there is no API yet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from falsework.assets.ignition import Config
from falsework.assets.served_config import served_config
from falsework.config_server.source import BadConfigError, NoSuchConfigError, PoolConfig
from falsework.web.watched import stamp

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


class Files:
    """`machine-pools/<pool>.yaml`, `machine-configs/<rendered>.yaml` and `join/<node>.kubeconfig` below a folder,
    read again when they have changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._served: dict[str, PoolConfig] = {}

    def config(self, pool: str) -> PoolConfig:
        pool_file = self._file("machine-pools", pool)
        rendered = _rendered_name(pool_file, _document(pool_file))
        file = self._file("machine-configs", rendered)
        version = (rendered, _stamp(file))
        known = self._served.get(pool)
        if known is None or known.version != version:
            known = self._served[pool] = PoolConfig(rendered, version, _config(file, _document(file)))
        return known

    def join_credential(self, node: str) -> tuple[object, bytes]:
        file = self._root / "join" / f"{node}.kubeconfig"
        try:
            return stamp(file), file.read_bytes()
        except OSError as error:
            raise BadConfigError(f"{file} cannot be read: {error.strerror}") from None

    def _file(self, folder: str, name: str) -> Path:
        if not _PLAIN_NAME.fullmatch(name):
            raise NoSuchConfigError(f"{name!r:.60} is no name of a file in {folder}")
        return self._root / folder / f"{name}.yaml"


def _stamp(file: Path) -> object:
    try:
        return stamp(file)
    except OSError as error:
        raise NoSuchConfigError(f"{file}: {error.strerror}") from None


def _document(file: Path) -> Any:
    try:
        return yaml.load(file.read_bytes(), Loader=_LOADER)  # noqa: S506 - it is the safe one
    except FileNotFoundError as error:
        raise NoSuchConfigError(f"{file}: {error.strerror}") from None
    except OSError as error:
        raise BadConfigError(f"{file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise BadConfigError(f"{file} is no valid YAML") from None


def _rendered_name(file: Path, pool: Any) -> str:
    try:
        return str(pool["spec"]["configuration"]["name"])
    except (KeyError, TypeError):
        raise BadConfigError(f"{file} names no configuration") from None


def _config(file: Path, machine_config: Any) -> Config:
    try:
        return served_config(machine_config)
    except (KeyError, TypeError, AttributeError):
        raise BadConfigError(f"{file} is no MachineConfig") from None
