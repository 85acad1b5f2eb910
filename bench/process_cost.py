"""What single processes cost: read from /proc, before and after a while."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_IN_PODS = "falsework.in_machine"
_ON_MACHINES = "/falsework.pyz"
_KEEPER = "falsework.machines.keeper"


@dataclass(frozen=True)
class Process:
    name: str
    """The entry point of what is Falsework's, else the program."""
    is_ours: bool
    """One of Falsework's pods: an operator, or a daemon."""
    cpu_seconds: float
    resident_bytes: int
    proportional_bytes: int
    """What is shared with others counts by halves, thirds, …: the sum over all processes is what they really take."""


@dataclass(frozen=True)
class Cost:
    """Of all processes of one name."""

    name: str
    is_ours: bool
    processes: int
    cpu_percent: float
    """Of one core, all of them together."""
    largest_bytes: int
    """Resident memory of the largest."""
    proportional_bytes: int


Identity = tuple[int, int]
"""A number is given again; with the moment of its start it is one process."""


def processes(pids: Iterable[int], proc: Path = Path("/proc")) -> dict[Identity, Process]:
    """Those that are still there."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            words = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            memory = _kibibytes((proc / str(pid) / "smaps_rollup").read_text())
            name, is_ours = called(words)
            found[pid, int(fields[19])] = Process(
                name,
                is_ours,
                (int(fields[11]) + int(fields[12])) / _TICK,
                memory.get("Rss", 0) * 1024,
                memory.get("Pss", 0) * 1024,
            )
    return found


def called(words: Sequence[str]) -> tuple[str, bool]:
    """The name of a process with this command line, and whether it is a pod of Falsework's."""
    if _IN_PODS in words[:-1]:
        return words[words.index(_IN_PODS) + 1], True
    for place, word in enumerate(words[:-1]):
        if word.endswith(_ON_MACHINES):
            return words[place + 1], False
        if _KEEPER in word:
            return "keeper", False
    return words[0].partition(" ")[0].rpartition("/")[2].rstrip(":") or "unknown", False


def costs(before: Mapping[Identity, Process], after: Mapping[Identity, Process], seconds: float) -> list[Cost]:
    """By name, the dearest first. What a process that came or went meanwhile used is not among it."""
    together: dict[tuple[str, bool], list[Identity]] = {}
    for identity in before.keys() & after.keys():
        together.setdefault((after[identity].name, after[identity].is_ours), []).append(identity)
    found = [
        Cost(
            name,
            is_ours,
            len(identities),
            100 * sum(after[one].cpu_seconds - before[one].cpu_seconds for one in identities) / seconds,
            max(after[one].resident_bytes for one in identities),
            sum(after[one].proportional_bytes for one in identities),
        )
        for (name, is_ours), identities in together.items()
    ]
    return sorted(found, key=lambda cost: (-cost.cpu_percent, cost.name))


def _kibibytes(text: str) -> dict[str, int]:
    """Lines such as `Rss:   1234 kB`."""
    rows = (line.split() for line in text.splitlines())
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) == 3 and row[2] == "kB"}
