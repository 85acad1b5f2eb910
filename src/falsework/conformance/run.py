"""Running the tests in the lab's network, as its administrator."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TextIO

from falsework.assets.serialize import to_yaml
from falsework.conformance.images import registry_list
from falsework.conformance.report import Case, cases_in
from falsework.errors import UsageError
from falsework.files import write_file
from falsework.machines.view import View
from falsework.process import CommandError, run

LABEL = "Conformance"
_SERIAL = "Serial"
_MASTERS = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")
"""Taints of nodes that the tests need not wait for: they run on the others."""
_BEGINS = re.compile(r"^Will run (\d+) of \d+ specs")
_ENDED = re.compile(r"^• (?P<failed>\[(FAILED|PANICKED|TIMEDOUT|INTERRUPTED)\] )?\[[\d.]+ seconds\]")


@dataclass(frozen=True)
class Selection:
    focus: str = ""
    """Regular expressions on the tests' full names."""
    skip: str = ""

    @classmethod
    def checked(cls, focus: str, skip: str) -> Self:
        for option, expression in (("--focus", focus), ("--skip", skip)):
            try:
                re.compile(expression)
            except re.error as error:
                raise UsageError(
                    f"{option} is no regular expression: {error}",
                    fix="put a backslash before brackets and dots that are part of a name",
                ) from None
        return cls(focus, skip)

    def takes(self, name: str) -> bool:
        wanted = not self.focus or re.search(self.focus, name)
        return bool(wanted) and not (self.skip and re.search(self.skip, name))


@dataclass(frozen=True)
class Phase:
    name: str
    labels: str
    processes: int


def phases(parallel: int) -> tuple[Phase, ...]:
    """Tests that disturb others run alone, after them."""
    if parallel == 1:
        return (Phase("all", LABEL, 1),)
    return (
        Phase("parallel", f"{LABEL} && !{_SERIAL}", parallel),
        Phase("serial", f"{LABEL} && {_SERIAL}", 1),
    )


@dataclass(frozen=True)
class Programs:
    tests: Path
    runner: Path
    kubectl: Path


def listed(tests: Path, selection: Selection) -> list[str]:
    """The names of the conformance tests that are selected. Asks no cluster."""
    output = run((tests, "--list-tests"), kept=1 << 24).output
    return [name for name in names_in(output) if selection.takes(name)]


def names_in(listing: str) -> list[str]:
    """Of conformance tests, from lines of `file:line: name`."""
    found = re.findall(r"^\s+\S+:\d+:\s+(.+)$", listing, re.MULTILINE)
    return [name for name in found if f"[{LABEL}]" in name]


class Runner:
    def __init__(self, view: View, programs: Programs, results: Path) -> None:
        self.view = view
        self.programs = programs
        self.results = results

    def run(self, phase: Phase, selection: Selection, tell: Callable[[Tally], None]) -> list[Case]:
        """To the end, whatever comes of the tests. `tell` hears of every one that has ended."""
        report = self.results / f"junit_{phase.name}_01.xml"
        report.unlink(missing_ok=True)
        registries = self.results / "registries.yaml"
        write_file(registries, to_yaml(registry_list()))
        with (self.results / f"{phase.name}.log").open("w", buffering=1) as log:
            listener = _Listener(log, tell)
            words = command(self.programs, phase, selection, self.results)
            # There is an option for it too, which comes too late for what the tests note when they are loaded.
            env = {**self.view.environment(os.environ), "KUBE_TEST_REPO_LIST": str(registries)}
            try:
                run(self.view.command(words), only_env=env, each_line=listener.take)
            except CommandError as error:
                log.write(error.finished.complaints)
                # Failed tests end it badly too; only without a report there is nothing to read.
                if not report.exists():
                    raise
        return list(cases_in(report))


def command(programs: Programs, phase: Phase, selection: Selection, results: Path) -> Sequence[str | Path]:
    chosen = {"focus": selection.focus, "skip": selection.skip}
    return (
        *(programs.runner, "run", "-v", "--no-color", "--silence-skips", "--timeout=24h"),
        *(f"--procs={phase.processes}", f"--label-filter={phase.labels}"),
        *(f"--{name}={expression}" for name, expression in chosen.items() if expression),
        *(programs.tests, "--"),
        *("--provider=local", f"--kubectl-path={programs.kubectl}", "--disable-log-dump"),
        f"--non-blocking-taints={','.join(_MASTERS)}",
        *(f"--report-dir={results}", f"--report-prefix={phase.name}_"),
    )


@dataclass(frozen=True)
class Tally:
    """How far a run is."""

    ended: int = 0
    failed: int = 0
    of: int = 0

    def after(self, line: str) -> Self:
        """Once the tests have said this."""
        if match := _BEGINS.match(line):
            return dataclasses.replace(self, of=int(match[1]))
        if match := _ENDED.match(line):
            return dataclasses.replace(self, ended=self.ended + 1, failed=self.failed + bool(match["failed"]))
        return self

    def __str__(self) -> str:
        return f"{self.ended} of {self.of} ended, {self.failed} failed"


class _Listener:
    """Keeps all that is said, and counts."""

    def __init__(self, log: TextIO, tell: Callable[[Tally], None]) -> None:
        self._log = log
        self._tell = tell
        self._tally = Tally()

    def take(self, line: str) -> None:
        self._log.write(f"{line}\n")
        tally = self._tally.after(line)
        if tally != self._tally:
            self._tally = tally
            self._tell(tally)
