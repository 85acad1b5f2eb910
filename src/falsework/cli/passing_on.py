"""Telling our own words of a command from those that another program gets, whatever they look like."""

from __future__ import annotations

_WITH_VALUE = ("--dir",)


def split(words: list[str], own: int) -> tuple[list[str], list[str]]:
    """The command's name and its own words, and the rest, which starts after `own` words without a dash, or at `--`.

    argparse cannot do this: it takes options from anywhere on the line, `--help` first of all.
    """
    ours, rest = words[:1], words[1:]
    while rest:
        if rest[0] == "--":
            return ours, rest[1:]
        count = 2 if rest[0] in _WITH_VALUE else 1
        if rest[0].split("=")[0] not in _WITH_VALUE:
            if own == 0:
                break
            own -= not rest[0].startswith("-")
        ours, rest = ours + rest[:count], rest[count:]
    return ours, rest[1:] if rest[:1] == ["--"] else rest
