"""The HAProxy beside this program: given its configuration, loaded anew only where it must be."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from falsework.errors import FalseworkError
from falsework.files import write_file
from falsework.haproxy import command_line
from falsework.operators.router.config import FILES, Config, Place
from falsework.operators.router.endpoints import Endpoint
from falsework.operators.router.slots import Slots, changes, fitted, fresh, server_name

_PATIENCE = 10.0
_LOADING = 60.0
"""Seconds a new configuration may take: with many certificates, on a busy machine."""
_TICK = 0.05
_AT_ONCE = 40
"""Commands in one question: HAProxy reads no more than one buffer of them."""
_MASTER = re.compile(r"^[0-9]+\s+master\s+(?P<reloads>[0-9]+) \[failed: (?P<failed>[0-9]+)\]", re.MULTILINE)
_WORKER = re.compile(r"^[0-9]+\s+worker\s+0\s", re.MULTILINE)
"""A worker that was not there before the last reload."""
_SECRET = 0o600
_LOG = "`kubectl -n openshift-ingress logs POD -c haproxy`"


class RefusedError(FalseworkError):
    """HAProxy goes on with the configuration it had."""


@dataclass(frozen=True)
class _Loaded:
    config: Config
    slots: dict[str, Slots]

    @property
    def text(self) -> str:
        return self.config.text(self.slots)


class Proxy:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._loaded: _Loaded | None = None
        """None: nobody knows what it runs with."""

    def prepare(self, first: Config) -> None:
        """There is something to start with, whoever comes first; what is there already is better."""
        if not self._place.config.exists():
            self._write(_Loaded(first, {}))

    def needs_reload(self, config: Config) -> bool:
        return self._refitted(config) is None

    def use(self, config: Config) -> bool:
        """Whether it was loaded anew. RefusedError if it does not take it: then all is as it was."""
        refitted = self._refitted(config)
        if refitted is not None and self._moved(refitted):
            return False
        self._load(_Loaded(config, {one.name: fresh(one.endpoints) for one in config.backends}))
        return True

    def _refitted(self, config: Config) -> _Loaded | None:
        """The same with the pods of `config`, if that is all that differs and there is room for them."""
        if self._loaded is None or not config.is_like(self._loaded.config):
            return None
        slots: dict[str, Slots] = {}
        for backend in config.backends:
            fitting = fitted(self._loaded.slots[backend.name], backend.endpoints)
            if fitting is None:
                return None
            slots[backend.name] = fitting
        return _Loaded(config, slots)

    def _moved(self, wanted: _Loaded) -> bool:
        """Whether the running one has been told, and says that it is so."""
        assert self._loaded is not None
        old = self._loaded.slots
        touched = [name for name, slots in wanted.slots.items() if slots != old[name]]
        commands = [command for name in touched for command in changes(name, old[name], wanted.slots[name])]
        if not commands:
            return True
        # From here on, until it is known to be done, nobody knows what it runs with.
        self._loaded = None
        self._write(wanted)
        for first in range(0, len(commands), _AT_ONCE):
            self._ask(";".join(f"@1 {command}" for command in commands[first : first + _AT_ONCE]))
        if not _agree(self._ask("@1 show servers state"), {name: wanted.slots[name] for name in touched}):
            return False
        self._loaded = wanted
        return True

    def _load(self, wanted: _Loaded) -> None:
        before = self._place.config.read_bytes()
        reloads, _, _ = self._processes()
        self._loaded = None
        self._write(wanted)
        is_taken = False
        try:
            self._reload()
            is_taken = self._comes_up(reloads)
        finally:
            if not is_taken:
                # Whatever starts it next must find what it can start with.
                write_file(self._place.config, before, _SECRET)
        if not is_taken:
            raise RefusedError("HAProxy does not take this configuration", cause="it says why in its own log", fix=_LOG)
        self._loaded = wanted
        self._tidy(wanted.config.files)

    def _reload(self) -> None:
        # It ends this connection when it starts itself anew.
        try:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                command_line.ask(self._place.master_socket, "reload", _PATIENCE)
        except OSError as error:
            raise self._silent(error) from None

    def _comes_up(self, reloads: int) -> bool:
        deadline = time.monotonic() + _LOADING
        while True:
            # Between the two there is a moment in which nobody answers.
            with contextlib.suppress(FalseworkError):
                now, failed, is_new = self._processes()
                if now > reloads and (failed or is_new):
                    return not failed
            if time.monotonic() > deadline:
                raise FalseworkError(f"HAProxy has not loaded its configuration within {_LOADING:.0f} s", fix=_LOG)
            time.sleep(_TICK)

    def _processes(self) -> tuple[int, int, bool]:
        """Reloads so far, how many of the last ones failed, and whether its worker is one of the last configuration."""
        answer = self._ask("show proc")
        master = _MASTER.search(answer)
        if master is None:
            raise FalseworkError("HAProxy does not answer as one does", cause=f"{self._place.master_socket}")
        current = answer.partition("# old workers")[0]
        return int(master["reloads"]), int(master["failed"]), _WORKER.search(current) is not None

    def _ask(self, command: str) -> str:
        try:
            return command_line.ask(self._place.master_socket, command, _PATIENCE)
        except OSError as error:
            raise self._silent(error) from None

    def _silent(self, error: OSError) -> FalseworkError:
        cause = f"{self._place.master_socket}: {error.strerror or error}"
        return FalseworkError("HAProxy does not answer", cause=cause, fix=_LOG)

    def _write(self, loaded: _Loaded) -> None:
        folder = self._place.folder / FILES
        for name, content in loaded.config.files.items():
            if not (folder / name).exists():
                write_file(folder / name, content, _SECRET)
        write_file(self._place.config, loaded.text.encode(), _SECRET)

    def _tidy(self, used: Mapping[str, bytes]) -> None:
        """Keys of routes that are gone do not stay."""
        for path in (self._place.folder / FILES).iterdir():
            if path.name not in used:
                path.unlink()


def _agree(answer: str, wanted: Mapping[str, Slots]) -> bool:
    """Whether the running servers are these."""
    rows = [line.split() for line in answer.splitlines()]
    columns = next((row[1:] for row in rows if row[:2] == ["#", "be_id"]), [])
    states = [dict(zip(columns, row, strict=False)) for row in rows if len(row) >= len(columns) > 0 and row[0] != "#"]
    running = {(row["be_name"], row["srv_name"]): row for row in states}
    return all(
        _is_so(running.get((backend, server_name(index)), {}), endpoint)
        for backend, slots in wanted.items()
        for index, endpoint in enumerate(slots)
    )


def _is_so(row: Mapping[str, str], wanted: Endpoint | None) -> bool:
    is_running = row.get("srv_op_state") == "2"
    if wanted is None:
        return bool(row) and not is_running
    told = (row.get("srv_addr"), row.get("srv_port"), row.get("srv_uweight"))
    return is_running and told == (wanted.address, str(wanted.port), str(wanted.weight))
