"""What a namespace machine was made with and how it is doing: small files in its folder.

The keeper runs as a process of its own, under whatever Falsework starts next; these files are all they share.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from falsework.files import write_file
from falsework.machines.provider import Power, State

INTERFACE = "eth0"
_LOCK = "hhqqi0q"
"""struct flock, as the C compiler lays it out."""


@dataclass(frozen=True)
class Settings:
    """What the keeper has to know."""

    name: str
    hostname: str
    mac: str
    cpus: int
    memory_mib: int
    os_root: str
    folders: list[str] = field(default_factory=list)
    binds: dict[str, str] = field(default_factory=dict)
    ignition: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class MachineFolder:
    """The folder of one machine."""

    path: Path

    @property
    def console(self) -> Path:
        return self.path / "console.log"

    @property
    def keeper_log(self) -> Path:
        """What the keeper itself says when it cannot go on: usually nothing."""
        return self.path / "keeper.log"

    @property
    def root(self) -> Path:
        """Where the keeper mounts the machine's root, seen by it alone."""
        return self.path / "root"

    @property
    def upper(self) -> Path:
        """What the machine's root has beyond the OS image."""
        return self.path / "upper"

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def applied(self) -> Path:
        """There once Ignition has done all its work: the machine then boots from its disk."""
        return self.path / "ignition-applied"

    @property
    def starting(self) -> Path:
        """Held by whoever switches the machine on."""
        return self.path / "starting"

    def disk(self, place: str) -> Path:
        """The host's folder for a place in the machine."""
        return self.path / "disk" / place.strip("/").replace("/", "-")

    def settings(self) -> Settings | None:
        try:
            return Settings(**json.loads((self.path / "machine.json").read_text()))
        except FileNotFoundError:
            return None

    def set_settings(self, settings: Settings) -> None:
        write_file(self.path / "machine.json", json.dumps(asdict(settings), indent=1).encode(), 0o600)

    # Power

    def switch_on(self) -> bool:
        """Hold the machine's power switch until this process ends; False if another one has it."""
        switch = os.open(self.path / "power", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(switch, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(switch)
            return False
        return True

    def keeper(self) -> int | None:
        """The process that has the switch, None if there is none: the kernel knows, however it ended."""
        try:
            switch = os.open(self.path / "power", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        question = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        try:
            kind, _, _, _, pid = struct.unpack(_LOCK, fcntl.fcntl(switch, fcntl.F_GETLK, question))
        finally:
            os.close(switch)
        return None if kind == fcntl.F_UNLCK else int(pid)

    def set_state(self, power: Power, doing: str) -> None:
        state = {"power": power, "doing": doing, "since": time.time()}
        # No fsync: after a crash of the host the machine is off, whatever stands here.
        draft = self.path / ".state"
        draft.write_text(json.dumps(state))
        draft.replace(self.path / "state.json")

    def state(self) -> State:
        if not (self.path / "machine.json").exists():
            return State(Power.ABSENT)
        noted = self._noted()
        if self.keeper() is None:
            return State(Power.OFF, noted.doing if noted.power is Power.OFF else "lost its power", noted.since)
        # A keeper has the switch a moment longer than its last word: the machine is not off before that is free.
        return noted if noted.power is not Power.OFF else State(Power.BOOTING, noted.doing, noted.since)

    def _noted(self) -> State:
        try:
            noted: dict[str, Any] = json.loads((self.path / "state.json").read_text())
        except FileNotFoundError:
            return State(Power.OFF, "never switched on")
        return State(Power(noted["power"]), noted["doing"], noted["since"])
