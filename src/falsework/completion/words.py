"""What may be typed, read from argparse's parsers: commands, their actions, options, and what those take."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Kind(Enum):
    """What a shell offers as a value."""

    CHOICES = "choices"
    MACHINES = "machines"
    """Asked for when they are needed: the site may have changed."""
    FOLDERS = "folders"
    FILES = "files"
    NOTHING = "nothing"
    """Nobody can know."""


@dataclass(frozen=True)
class Value:
    kind: Kind
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    flags: tuple[str, ...]
    about: str
    value: Value | None
    """None for one that takes no value."""


@dataclass(frozen=True)
class Level:
    """A command, or an action of a command: what may follow it."""

    path: tuple[str, ...]
    about: str
    options: tuple[Option, ...]
    actions: tuple[Level, ...]
    argument: Value | None

    def everything(self) -> Iterator[Level]:
        yield self
        for action in self.actions:
            yield from action.everything()


def read(parser: argparse.ArgumentParser, path: tuple[str, ...] = (), about: str = "") -> Level:
    options: list[Option] = []
    actions: list[Level] = []
    argument: Value | None = None
    # argparse offers its parsers to be filled, not to be read; these names have been the same since it exists.
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            actions += [
                read(sub, (*path, name), _sentence(summaries.get(name, ""))) for name, sub in action.choices.items()
            ]
        elif action.option_strings:
            takes_one = action.nargs != 0
            options.append(
                Option(tuple(action.option_strings), _sentence(action.help), _value(action) if takes_one else None)
            )
        elif argument is None:
            argument = _value(action)
    return Level(path, about, tuple(options), tuple(actions), argument)


def _value(action: argparse.Action) -> Value:
    if action.choices is not None:
        return Value(Kind.CHOICES, tuple(map(str, action.choices)))
    if action.metavar == "MACHINE":
        return Value(Kind.MACHINES)
    if action.metavar in ("FOLDER", "DIR"):
        return Value(Kind.FOLDERS)
    if action.metavar == "FILE" or action.type is Path:
        return Value(Kind.FILES)
    return Value(Kind.NOTHING)


def _sentence(text: str | None) -> str:
    """The first part of a help text, without argparse's own placeholders."""
    first = (text or "").partition(" (default")[0].partition(";")[0]
    return first.replace("%%", "%")
