"""One line of the ledger: who asked for what, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class Service(StrEnum):
    DHCP = "dhcp"
    TFTP = "tftp"
    DNS = "dns"
    HTTP = "http"
    MCS = "mcs"
    BALANCER = "balancer"
    REGISTRY = "registry"
    NFS = "nfs"


@dataclass(frozen=True)
class LedgerEntry:
    time: float
    """Seconds since 1970."""
    service: Service
    machine: str | None
    """None for a stranger."""
    client: str
    """Its address, or its MAC before it has one; empty where the service does not say."""
    asked: str
    got: str
    """Empty for nothing."""
    because: str
    """Why it got no more than that; empty where all went well."""

    def sentence(self) -> str:
        client = f" ({self.client})" if self.client and self.machine else self.client
        who = f"{self.machine or ''}{client}" or "somebody"
        because = f", because {self.because}" if self.because else ""
        return f"{who} asked for {self.asked}, got {self.got or 'nothing'}{because}"


@dataclass(frozen=True)
class Repeated:
    """The same entry, several times in quick succession."""

    first: LedgerEntry
    times: int
    last: float

    def line(self) -> str:
        moment = datetime.fromtimestamp(self.first.time).astimezone()
        shown = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"
        seconds = self.last - self.first.time
        repeated = f" ({self.times} times in {seconds:.0f} s)" if self.times > 1 else ""
        return f"{shown}  {self.first.service:<8}  {self.first.sentence()}{repeated}"


def folded(entries: Iterable[LedgerEntry], pause: float = 15.0) -> list[Repeated]:
    """In the order of time. A question begins a new line when its answer is another one, or after a pause."""
    lines: list[Repeated] = []
    places: dict[LedgerEntry, int] = {}
    for entry in sorted(entries, key=lambda entry: entry.time):
        question = replace(entry, time=0.0, got="", because="")
        place = places.get(question)
        if place is not None:
            line = lines[place]
            if replace(entry, time=line.first.time) == line.first and entry.time - line.last <= pause:
                lines[place] = replace(line, times=line.times + 1, last=entry.time)
                continue
        places[question] = len(lines)
        lines.append(Repeated(entry, 1, entry.time))
    return lines
