"""Machines without virtualization: systemd-nspawn in namespaces and control groups of its own, with real systemd.

Every machine has a keeper (see `keeper`), which lives on when the command that started it ends. What is said here to
the machine goes through its folder, its control groups and its namespaces; nothing is remembered.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import falsework
from falsework.assets.ignition import File
from falsework.errors import FalseworkError
from falsework.files import only_one, remove_tree
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines import cgroups, share
from falsework.machines.cgroups import Group, Usage
from falsework.machines.provider import Power, Spec, State
from falsework.machines.settings import MachineFolder, Settings
from falsework.process import CommandError, Finished, detach, run

KIND = "machine"
CONTAINERD = "/var/lib/containerd"
_OWN_PROCESSES = ("--pid", "--fork", "--kill-child", "--mount-proc")
_POWER_OFF = signal.SIGRTMIN + 4
_SHUTDOWN_PATIENCE = 90.0
_TICK = 0.02
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NO_FILE = 44
_LARGEST_FILE = 64 << 20
_READ = f'test -f "$1" || exit {_NO_FILE}; exec base64 -w0 "$1"'
_REPLACE = (
    "umask 077; tar --extract --directory=/ --no-same-owner --touch; "
    'for path; do mv -f "${path%/*}/.${path##*/}.new" "$path"; done'
)
"""By drafts that those who watch the folder take no notice of. They get the folder's group, if it gives its own."""


class Nspawn:
    def __init__(self, lab: Lab, journal: Journal) -> None:
        self._lab = lab
        self._journal = journal

    # Provider

    def create(self, spec: Spec, os_root: Path, seed: Callable[[Path], object] | None = None) -> None:
        """`seed` fills the machine's containerd folder before the machine is there, so that it is never half full."""
        folder = self._folder(spec.name)
        if folder.settings() is None:
            self._journal.creating(KIND, spec.name)
            folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            for place in spec.folders:
                remove_tree(folder.disk(place))
                folder.disk(place).mkdir(parents=True)
            if seed and CONTAINERD in spec.folders:
                seed(folder.disk(CONTAINERD))
        settings = Settings(
            **{key: value for key, value in asdict(spec).items() if key not in ("folders", "ignition")},
            folders=list(spec.folders),
            ignition=str(spec.ignition) if spec.ignition else None,
            os_root=str(os_root),
        )
        if folder.settings() != settings:
            folder.set_settings(settings)

    def start(self, name: str) -> None:
        folder = self._folder(name)
        with only_one(folder.starting, lambda _: None):
            settings = self._settings(name)
            if folder.keeper() is not None:
                return
            groups = self._new_groups(name)
            cgroups.limit(groups, settings.cpus, settings.memory_mib)
            inside = [cgroups.make(group, cgroups.KEEPER) for group in groups]
            # Mounts and processes of its own: they end with the keeper, however it ends.
            alone = (*("unshare", "--mount", "--propagation", "private"), *_OWN_PROCESSES)
            network = ("nsenter", f"--net={self._lab.netns_path(name)}", "--")
            # Otherwise a machine that lost its power would seem to run until its keeper has its first word.
            folder.set_state(Power.BOOTING, "power on")
            keeper = (*network, *alone, *_python("falsework.machines.keeper"), str(folder.path))
            detach(cgroups.joined(inside, keeper), log=folder.keeper_log)
            self._await_keeper(name, inside)

    def stop(self, name: str) -> None:
        folder = self._folder(name)
        if folder.keeper() is None:
            return
        init = self._init(name)
        if init is None:
            # It has no system yet that could be shut down.
            self.kill(name)
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(init, _POWER_OFF)
        deadline = time.monotonic() + _SHUTDOWN_PATIENCE
        while folder.keeper() is not None:
            if time.monotonic() > deadline:
                raise FalseworkError(
                    f"{name} has not shut down in {_SHUTDOWN_PATIENCE:.0f} s",
                    cause=self.state(name).doing,
                    fix=f"see `falsework machine console {name}`, or pull the plug: `falsework machine kill {name}`",
                )
            time.sleep(_TICK)
        self._remove_groups(name)

    def kill(self, name: str) -> None:
        # With the keeper, the kernel ends all others at once.
        keeper = self._folder(name).keeper()
        if keeper is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGKILL)
        self._remove_groups(name)

    def destroy(self, name: str) -> None:
        self.kill(name)
        remove_tree(self._folder(name).path)

    def state(self, name: str) -> State:
        return self._folder(name).state()

    def console(self, name: str) -> Path:
        return self._folder(name).console

    def command(self, name: str, words: Sequence[str]) -> tuple[str, ...]:
        init = self._running(name)
        # Its work is the machine's work: it counts against the machine's limits.
        enter = ("nsenter", f"--target={init}", "--all", "--wd", "--")
        environment = ("env", "-i", f"PATH={_PATH}", "HOME=/root", f"TERM={os.environ.get('TERM', 'dumb')}")
        return cgroups.joined(cgroups.groups_of(init), (*enter, *environment, *words))

    def execute(self, name: str, words: Sequence[str]) -> Finished:
        return run(self.command(name, words))

    def read_file(self, name: str, path: str) -> bytes:
        """Not through /proc/…/root: a link in the machine could lead to the host's own files."""
        command = self.command(name, ("sh", "-ec", _READ, "read", path))
        try:
            return base64.b64decode(run(command, kept=_LARGEST_FILE).output)
        except CommandError as error:
            if error.finished.returncode == _NO_FILE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{name}:{path}") from None
            raise

    def write_file(self, name: str, path: str, content: bytes, mode: int = 0o644) -> None:
        self.write_files(name, [File(path, content, mode)])

    def write_files(self, name: str, files: Sequence[File]) -> None:
        words = ("sh", "-ec", _REPLACE, "replace", *(file.path for file in files))
        run(self.command(name, words), given=_drafts(files))

    # Beyond the protocol

    def names(self) -> list[str]:
        return sorted(path.parent.name for path in self._lab.machine("x").parent.glob("*/machine.json"))

    def usage(self, name: str) -> Usage:
        return cgroups.usage(self._groups(name))

    def described(self, name: str) -> dict[str, Any]:
        """How it is doing, for people and programs to read."""
        state, usage = self.state(name), self.usage(name)
        return {
            "name": name,
            "power": str(state.power),
            "doing": state.doing,
            "since": state.since,
            "cpuSeconds": round(usage.cpu_seconds, 2),
            "memoryBytes": usage.memory_bytes,
        }

    def init(self, name: str) -> int:
        """The machine's first process, as the host numbers it."""
        return self._running(name)

    # Inside

    def _folder(self, name: str) -> MachineFolder:
        return MachineFolder(self._lab.machine(name))

    def _settings(self, name: str) -> Settings:
        settings = self._folder(name).settings()
        if settings is None:
            raise FalseworkError(
                f"there is no machine {name}",
                cause=f"{self._lab.root} has {', '.join(self.names()) or 'none'}",
                fix="run `falsework up` to make the machines of the site, or name one of these",
            )
        return settings

    def _groups(self, name: str) -> list[Group]:
        return [group.child(name) for group in share.noted_groups(self._journal)]

    def _new_groups(self, name: str) -> list[Group]:
        """Without a trace of an earlier life in them."""
        self._remove_groups(name)
        return [cgroups.make(group, name) for group in share.lab_groups(self._lab, self._journal)]

    def _remove_groups(self, name: str) -> None:
        groups = self._groups(name)
        cgroups.kill(groups)
        cgroups.remove(groups)

    def _await_keeper(self, name: str, inside: Sequence[Group]) -> None:
        folder = self._folder(name)
        started = time.monotonic()
        while folder.keeper() is None:
            # It may have been and gone, which its groups and its log tell.
            if time.monotonic() - started > 1.0 and not cgroups.processes(inside):
                raise FalseworkError(
                    f"{name} could not be switched on",
                    cause="; ".join(folder.keeper_log.read_text().splitlines()[-3:]) or self.state(name).doing,
                    fix=f"look at {folder.keeper_log} and {folder.console}",
                )
            time.sleep(0.005)

    def _running(self, name: str) -> int:
        self._settings(name)
        init = self._init(name)
        if init is None:
            state = self.state(name)
            booting = state.power is Power.BOOTING
            raise FalseworkError(
                f"{name} is {state.power}: nothing can run in it",
                cause=state.doing or None,
                fix=f"wait: `falsework machine console --follow {name}` shows how far it is"
                if booting
                else f"run `falsework machine start {name}`",
            )
        return init

    def _init(self, name: str) -> int | None:
        """The first process of the namespace within the keeper's, if the machine has come that far."""
        level = len(_pids_of("self")) + 2
        for pid in sorted(cgroups.processes([group.child(cgroups.MACHINE) for group in self._groups(name)])):
            with contextlib.suppress(OSError):
                pids = _pids_of(pid)
                if len(pids) == level and pids[-1] == "1":
                    return pid
        return None


def _pids_of(pid: int | str) -> list[str]:
    """A process's number in each namespace it is in, the host's first."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return line.split()[1:]
    return []


def _python(module: str) -> tuple[str, ...]:
    """A Python that reads nothing but itself and us: it starts in a fifth of the time, and may live for weeks."""
    source = str(Path(falsework.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {source!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"
    return (sys.executable, "-I", "-S", "-c", program)


def _drafts(files: Sequence[File]) -> bytes:
    """An archive of them, each beside the place where it is to be."""
    import tarfile

    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for file in files:
            folder, _, own_name = file.path.removeprefix("/").rpartition("/")
            draft = tarfile.TarInfo(f"{folder}/.{own_name}.new")
            draft.size, draft.mode = len(file.content), file.mode
            archive.addfile(draft, io.BytesIO(file.content))
    return whole.getvalue()
