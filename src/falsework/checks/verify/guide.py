"""Checks as a guide prints them: each command with its section, typed where the guide says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Check, Place, Source, Verdict, skipped
from falsework.checks.verify.said import Judge
from falsework.site.model import Helper, Machine

NO_CONSOLE = "the cluster has no web console"


@dataclass(frozen=True)
class Command:
    """What a guide prints."""

    name: str
    section: str
    printed: str
    expected: str = "-"
    as_run: str = ""
    """What is typed instead."""
    because: str = ""
    """Why."""

    @property
    def typed(self) -> str:
        return self.as_run or self.printed


class Guide:
    """Builds the checks of one file. Ids begin with the file's number."""

    def __init__(self, facts: Facts, file: str) -> None:
        self.facts = facts
        self._file = file

    def in_shell(self, command: Command, judge: Judge, *, given: bytes = b"") -> Check:
        return self.looked(command, lambda: judge(self.facts.commands.in_shell(command.typed, given)))

    def on_host(self, command: Command, judge: Judge) -> Check:
        return self.looked(command, lambda: judge(self.facts.commands.on_host(command.typed)), place=Place.HOST)

    def on_helper(self, command: Command, judge: Judge) -> Check:
        return self._on(self.facts.site.helper, Place.HELPER, command, judge)

    def on_master(
        self, command: Command, judge: Judge, *, machine: Machine | None = None, terminal: bool = False
    ) -> Check:
        return self._on(machine or self.facts.master, Place.MASTER, command, judge, terminal=terminal)

    def on_bootstrap(
        self,
        command: Command,
        judge: Judge,
        *,
        terminal: bool = False,
        afterwards: str = "",
        judge_afterwards: Judge | None = None,
    ) -> Check:
        """Once the bootstrap has made way, `afterwards` is typed on a master; without it, there is nothing to ask."""
        facts = self.facts
        if facts.bootstrap is not None:
            return self._on(facts.bootstrap, Place.BOOTSTRAP, command, judge, terminal=terminal)
        if not afterwards:
            unasked = Command(command.name, command.section, command.printed)
            return self.not_here(unasked, "the bootstrap has made way, as it should", place=Place.BOOTSTRAP)
        because = f"the bootstrap has made way: asked of {facts.master.name}"
        asked = replace(command, as_run=afterwards, because=because)
        return self.on_master(asked, judge_afterwards or judge, terminal=terminal)

    def not_here(self, command: Command, reason: str, *, place: Place = Place.SHELL) -> Check:
        return self.looked(command, lambda: skipped(reason), place=place)

    def looked(
        self,
        command: Command,
        look: Callable[[], Verdict],
        *,
        place: Place = Place.SHELL,
        machine: Machine | Helper | None = None,
    ) -> Check:
        number = self._file.partition("_")[0]
        return Check(
            id=f"{number}/{command.name}",
            source=Source(self._file, command.section),
            command=command.printed,
            place=place,
            expected=command.expected,
            look=look,
            machine=machine.name if machine else "",
            as_run=command.as_run if command.as_run != command.printed else "",
            because=command.because,
        )

    def _on(
        self, machine: Machine | Helper, place: Place, command: Command, judge: Judge, *, terminal: bool = False
    ) -> Check:
        def look() -> Verdict:
            return judge(self.facts.commands.on(machine, command.typed, terminal=terminal))

        return self.looked(command, look, place=place, machine=machine)
