"""What a command said, and what to make of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from falsework.checks.verify.model import Verdict, failed, passed

_LONGEST = 240


@dataclass(frozen=True)
class Said:
    code: int
    output: str
    complaints: str = ""

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.output.splitlines() if line.strip()]

    @property
    def rows(self) -> list[list[str]]:
        """The lines of a table, each as its words."""
        return [line.split() for line in self.lines]

    @property
    def last_word(self) -> str:
        """What it said at its end, for a person."""
        words = [*self.lines, *(line for line in self.complaints.splitlines() if line.strip())]
        return short(words[-1]) if words else "it said nothing"


Judge = Callable[[Said], Verdict]


def short(text: str) -> str:
    """On one line, no longer than a person reads."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def fine(judge: Judge) -> Judge:
    """Asked only of a command that ended well."""

    def judged(said: Said) -> Verdict:
        return judge(said) if said.code == 0 else failed(f"exit code {said.code}: {said.last_word}")

    return judged


def passed_with_lines(said: Said) -> Verdict:
    """A list that is not empty."""
    return passed(f"{len(said.lines) - 1} rows") if len(said.lines) > 1 else failed(said.last_word)


def ends_well() -> Judge:
    return fine(lambda said: passed(said.last_word))


def is_exactly(text: str) -> Judge:
    def judged(said: Said) -> Verdict:
        answer = said.output.strip()
        return passed(short(answer)) if answer == text else failed(f"{short(answer) or 'nothing'}, not {text}")

    return fine(judged)


def has(*words: str) -> Judge:
    """Every one of these, somewhere."""

    def judged(said: Said) -> Verdict:
        missing = [word for word in words if word not in said.output]
        if missing:
            return failed(f"not there: {', '.join(missing)}")
        shown = [line for line in said.lines if any(word in line for word in words)]
        return passed(short("; ".join(dict.fromkeys(line.strip() for line in shown))))

    return fine(judged)


def has_at_least(count: int, pattern: str) -> Judge:
    """So many lines like this."""

    def judged(said: Said) -> Verdict:
        found = [line.strip() for line in said.lines if re.search(pattern, line)]
        told = f"{len(found)} of {count}: {'; '.join(found)}"
        return passed(short(told)) if len(found) >= count else failed(short(told))

    return fine(judged)


def counts_at_least(count: int) -> Judge:
    """A number, as `grep -c` and `wc -l` print it."""

    def judged(said: Said) -> Verdict:
        number = said.output.strip()
        good = number.isdecimal() and int(number) >= count
        return passed(number) if good else failed(f"{short(number) or 'nothing'}, not {count} or more")

    return fine(judged)


def every_row(wanted: str, good: Callable[[list[str]], bool], at_least: int = 1) -> Judge:
    """Of a table without its head."""

    def judged(said: Said) -> Verdict:
        bad = [" ".join(row) for row in said.rows if not good(row)]
        if bad:
            return failed(short(f"not {wanted}: {'; '.join(bad)}"))
        if len(said.rows) < at_least:
            return failed(f"{len(said.rows)} rows, not {at_least} or more")
        return passed(short(f"{len(said.rows)} {wanted}: {', '.join(row[0] for row in said.rows)}"))

    return fine(judged)


def nothing(wanted: str) -> Judge:
    def judged(said: Said) -> Verdict:
        return failed(short("; ".join(said.lines))) if said.lines else passed(wanted)

    return fine(judged)
