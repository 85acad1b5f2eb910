"""Where the Machine Config Server has its configs from: files on the bootstrap machine, the API on masters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from falsework.assets.ignition import Config


class NoSuchConfigError(Exception):
    """The pool, or its config, is not there."""


class BadConfigError(Exception):
    """It is there, and cannot be served."""


@dataclass(frozen=True)
class PoolConfig:
    name: str
    """Of the rendered MachineConfig."""
    version: object
    """Another one when the config is."""
    config: Config
    """What a pool's machines get."""


class ConfigSource(Protocol):
    def config(self, pool: str) -> PoolConfig: ...

    def join_credential(self, node: str) -> tuple[object, bytes]:
        """The kubeconfig a machine joins with, by its full name, after something that is another one when it is."""
