"""What a machine is to Falsework, whatever it is made of. Providers stand behind this one door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from falsework.assets.ignition import File
from falsework.process import Finished


@dataclass(frozen=True)
class Spec:
    """A machine to be made."""

    name: str
    hostname: str
    mac: str
    cpus: int
    memory_mib: int
    folders: tuple[str, ...] = ()
    """Places in the machine that are real folders of the host's disk, because an overlay would not do there."""
    binds: Mapping[str, str] = field(default_factory=dict)
    """Place in the machine → file or folder of the host it can read, not write."""
    ignition: Path | None = None
    """The config of a machine that boots from a file: the helper, before there is a network to boot from."""
    address: str | None = None
    """With its prefix length; for the same machine, which no DHCP server tells its address."""


class Power(StrEnum):
    ABSENT = "absent"
    """Not made yet."""
    OFF = "off"
    BOOTING = "booting"
    """From power on until systemd says it is up."""
    RUNNING = "running"


@dataclass(frozen=True)
class State:
    power: Power
    doing: str = ""
    """What it is at, or why it ended, in a few words."""
    since: float = 0.0
    """Seconds since 1970."""


class Provider(Protocol):
    """All of it may be called again: what is as it should be stays as it is."""

    def create(self, spec: Spec) -> None:
        """Make the machine, switched off."""

    def start(self, name: str) -> None:
        """Switch it on; returns at once, the machine boots by itself."""

    def stop(self, name: str) -> None:
        """Let its system shut down, and wait until it is off."""

    def kill(self, name: str) -> None:
        """Pull the plug."""

    def destroy(self, name: str) -> None:
        """Remove it with its disk, running or not."""

    def state(self, name: str) -> State: ...

    def console(self, name: str) -> Path:
        """The file with everything its console has shown, with times."""

    def command(self, name: str, words: Sequence[str]) -> tuple[str, ...]:
        """What to run on the host so that `words` run in the machine, at a terminal too."""

    def execute(self, name: str, words: Sequence[str]) -> Finished:
        """Run a command in the machine to its end."""

    def read_file(self, name: str, path: str) -> bytes:
        """A file of a running machine; FileNotFoundError if it has none there."""

    def write_file(self, name: str, path: str, content: bytes, mode: int = 0o644) -> None:
        """Replace a file of a running machine, whole or not at all."""

    def write_files(self, name: str, files: Sequence[File]) -> None:
        """The same for several, one after the other; at once, as each command in a machine takes its time."""
