"""Checks as a guide prints them: each command with its section, typed where the guide says."""

from __future__ import annotations

from collections.abc import Callable

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Check, Place, Source, Verdict, skipped
from falsework.checks.verify.said import Judge
from falsework.site.model import Helper, Machine

NO_CONSOLE = "the cluster has no web console"


class Guide:
    """Builds the checks of one file. Ids begin with the file's number."""

    def __init__(self, facts: Facts, file: str) -> None:
        self.facts = facts
        self._file = file

    def in_shell(
        self,
        name: str,
        section: str,
        command: str,
        expected: str,
        judge: Judge,
        *,
        as_run: str = "",
        because: str = "",
        given: bytes = b"",
    ) -> Check:
        script = as_run or command
        return self.looked(
            name,
            section,
            command,
            expected,
            lambda: judge(self.facts.commands.in_shell(script, given)),
            as_run=as_run,
            because=because,
        )

    def on_host(
        self, name: str, section: str, command: str, expected: str, judge: Judge, *, as_run: str, because: str
    ) -> Check:
        look = lambda: judge(self.facts.commands.on_host(as_run))  # noqa: E731 - it is this check's look
        return self.looked(name, section, command, expected, look, place=Place.HOST, as_run=as_run, because=because)

    def on_helper(
        self,
        name: str,
        section: str,
        command: str,
        expected: str,
        judge: Judge,
        *,
        as_run: str = "",
        because: str = "",
    ) -> Check:
        helper, script = self.facts.site.helper, as_run or command
        look = lambda: judge(self.facts.commands.on(helper, script))  # noqa: E731
        return self.looked(
            name,
            section,
            command,
            expected,
            look,
            place=Place.HELPER,
            machine=helper,
            as_run=as_run,
            because=because,
        )

    def on_master(
        self,
        name: str,
        section: str,
        command: str,
        expected: str,
        judge: Judge,
        *,
        machine: Machine | None = None,
        as_run: str = "",
        because: str = "",
        terminal: bool = False,
    ) -> Check:
        where, script = machine or self.facts.master, as_run or command
        look = lambda: judge(self.facts.commands.on(where, script, terminal=terminal))  # noqa: E731
        return self.looked(
            name,
            section,
            command,
            expected,
            look,
            place=Place.MASTER,
            machine=where,
            as_run=as_run,
            because=because,
        )

    def on_bootstrap(
        self,
        name: str,
        section: str,
        command: str,
        expected: str,
        judge: Judge,
        *,
        as_run: str = "",
        because: str = "",
        terminal: bool = False,
        afterwards: str = "",
        judge_afterwards: Judge | None = None,
    ) -> Check:
        """Once the bootstrap has made way, `afterwards` is typed on a master; without it, there is nothing to ask."""
        facts, script = self.facts, as_run or command
        if facts.bootstrap is None and not afterwards:
            return self.not_here(
                name, section, command, "the bootstrap has made way, as it should", place=Place.BOOTSTRAP
            )
        if facts.bootstrap is None:
            return self.on_master(
                name,
                section,
                command,
                expected,
                judge_afterwards or judge,
                as_run=afterwards,
                because=f"the bootstrap has made way: asked of {facts.master.name}",
                terminal=terminal,
            )
        machine = facts.bootstrap
        return self.looked(
            name,
            section,
            command,
            expected,
            lambda: judge(facts.commands.on(machine, script, terminal=terminal)),
            place=Place.BOOTSTRAP,
            machine=machine,
            as_run=as_run,
            because=because,
        )

    def not_here(
        self, name: str, section: str, command: str, reason: str, *, place: Place = Place.SHELL, expected: str = "-"
    ) -> Check:
        return self.looked(name, section, command, expected, lambda: skipped(reason), place=place)

    def looked(
        self,
        name: str,
        section: str,
        command: str,
        expected: str,
        look: Callable[[], Verdict],
        *,
        place: Place = Place.SHELL,
        machine: Machine | Helper | None = None,
        as_run: str = "",
        because: str = "",
    ) -> Check:
        number = self._file.partition("_")[0]
        return Check(
            id=f"{number}/{name}",
            source=Source(self._file, section),
            command=command,
            place=place,
            expected=expected,
            look=look,
            machine=machine.name if machine else "",
            as_run=as_run if as_run != command else "",
            because=because,
        )
