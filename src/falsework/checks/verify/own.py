"""Checks that no guide prints: what people expect of a cluster beyond."""

from __future__ import annotations

from collections.abc import Callable

from falsework.checks.verify.model import Check, Place, Source, Verdict

_FILE = "falsework"


def own(
    name: str, command: str, expected: str, look: Callable[[], Verdict], place: Place = Place.SHELL, machine: str = ""
) -> Check:
    """`name` is its id too; what stands before the slash is the section. `command` shows a person the same."""
    return Check(name, Source(_FILE, name.partition("/")[0]), command, place, expected, look, machine)
