"""Stages that are done once: each leaves a marker, and is skipped by every later run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from falsework.bootstrap.disk import Disk
from falsework.bootstrap.places import HOME
from falsework.bootstrap.records import Records
from falsework.bootstrap.waiting import Say
from falsework.errors import FalseworkError


@dataclass(frozen=True)
class StageRunner:
    disk: Disk
    records: Records
    say: Say

    def done(self, marker: str) -> bool:
        return self.disk.has(HOME / f"{marker}.done")

    def run(self, name: str, action: Callable[[], None], *phrases: str) -> None:
        """The marker comes last: a stage that was killed is run again, so `action` must bear that."""
        if self.done(name):
            return
        for phrase in phrases:
            self.say(phrase)
        with self.records.stage(name):
            action()
        self._mark(name)

    def attempt(self, name: str, action: Callable[[], None], *, marker: str) -> None:
        """A stage whose failure is noted and stops nothing; the next run tries it again."""
        if self.done(marker):
            return
        try:
            with self.records.stage(name):
                action()
        except FalseworkError as error:
            self.say(str(error))
        else:
            self._mark(marker)

    def _mark(self, marker: str) -> None:
        self.disk.write(HOME / f"{marker}.done", b"")
