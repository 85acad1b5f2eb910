"""Typing commands where guides say: at a workstation in the lab, on the helper, on machines."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from falsework.checks.verify.said import Said
from falsework.machines import ssh
from falsework.machines.nspawn import Nspawn
from falsework.machines.view import View
from falsework.process import CommandError, run
from falsework.site.model import Helper, Machine

SILENCE = 10.0
"""Seconds: nothing that is asked here needs a third of it on a busy host."""
_KEPT = 1 << 20
_NO_TIME = 124
"""The exit code of `timeout`."""
_FOR_TERMINALS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\^[@D]\x08\x08|^\^[@D]|[\x00\x07\x08]")


@dataclass
class _Once:
    """One command's answer. Whoever asks for the same meanwhile waits for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    said: Said | None = None


class Commands:
    """Everything typed here only looks, so what several guides print is typed once. `deadline` is by the monotonic
    clock."""

    def __init__(self, view: View, provider: Nspawn, deadline: float) -> None:
        self._view = view
        self._provider = provider
        self._deadline = deadline
        self._asked: dict[tuple[str, str], _Once] = {}
        self._lock = threading.Lock()

    def on_host(self, script: str) -> Said:
        """In the site's folder."""
        folder = self._view.lab.site_folder
        return self._once("host", script, lambda: self._run(("bash", "-c", script), cwd=folder))

    def in_shell(self, script: str, given: bytes = b"") -> Said:
        """As in `falsework shell`."""
        return self._once("shell", script, lambda: self._in_view(("bash", "-c", script), given))

    def on(self, machine: Machine | Helper, script: str, *, terminal: bool = False) -> Said:
        """As in `falsework exec`; some commands insist on a terminal."""
        words = ("script", "-qec", script, "/dev/null") if terminal else ("bash", "-c", script)
        return self._once(machine.name, script, lambda: self._run(self._provider.command(machine.name, words)))

    def by_ssh(self, machine: Machine, script: str) -> Said:
        """As in `falsework ssh`."""
        site, lab, read = self._view.site, self._view.lab, self._provider.read_file

        def typed() -> Said:
            return self._in_view(ssh.command(site, lab, machine, read, (script,)))

        return self._once(f"ssh {machine.name}", script, typed)

    def _in_view(self, words: Sequence[str], given: bytes = b"") -> Said:
        return self._run((*self._into_view, *words), self._view.environment(os.environ), given)

    @cached_property
    def _into_view(self) -> tuple[str, ...]:
        return self._view.command(())

    def _once(self, place: str, script: str, typed: Callable[[], Said]) -> Said:
        with self._lock:
            once = self._asked.setdefault((place, script), _Once())
        with once.lock:
            if once.said is None:
                once.said = typed()
            return once.said

    def _run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        given: bytes = b"",
        cwd: Path | None = None,
    ) -> Said:
        left = self._deadline - time.monotonic()
        if left <= 0:
            return Said(_NO_TIME, "", "there was no time left to ask")
        limit = min(SILENCE, left)
        try:
            done = run(words, only_env=environment, given=given, kept=_KEPT, silence_limit=limit, cwd=cwd)
        except CommandError as error:
            finished = error.finished
            if finished.returncode < 0:
                return Said(_NO_TIME, "", f"it did nothing for {limit:.0f} s and was stopped")
            return Said(finished.returncode, _plain(finished.output), finished.complaints)
        return Said(done.returncode, _plain(done.output), done.complaints)


def _plain(text: str) -> str:
    """Without what is meant for a terminal: colours, its line ends, and how `script` shows the end of its input."""
    return _FOR_TERMINALS.sub("", text.replace("\r\n", "\n"))
