"""The ledger: every request of every service of the helper, read from the helper's journal when somebody looks.

There is no daemon and no second copy: what the services write down is all there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from falsework.helper.boot import TFTP_ROOT
from falsework.helper.boot_server_files import UNIT as BOOT_SERVER_UNIT
from falsework.helper.ledger_entry import LedgerEntry
from falsework.helper.ledger_parsers import BootServer, Dnsmasq, Ganesha, Haproxy, Parser, Registry
from falsework.site.model import Site
from falsework.site.records import everyone

DNSMASQ_UNIT = "dnsmasq.service"
BALANCER_UNIT = "haproxy.service"
REGISTRY_UNIT = "registry.service"
NFS_UNIT = "nfs-ganesha.service"
UNITS = (DNSMASQ_UNIT, BOOT_SERVER_UNIT, BALANCER_UNIT, REGISTRY_UNIT, NFS_UNIT)

_LONGEST = 300
"""Characters of what a client sent, or a service said, that are shown."""


def journal_command(*, since: float | None = None, cursor: str | None = None, follow: bool = False) -> tuple[str, ...]:
    """What to run in the helper. Its output is for `read`."""
    return (
        *("journalctl", "--output=json", "--output-fields=MESSAGE,_SYSTEMD_UNIT", "--all", "--quiet", "--no-pager"),
        *(f"--unit={unit}" for unit in UNITS),
        *([f"--since=@{since:.6f}"] if since is not None else []),
        *([f"--after-cursor={cursor}"] if cursor is not None else []),
        *(["--follow", "--no-tail"] if follow else []),
    )


def read(journal_lines: Iterable[str], site: Site) -> Iterator[LedgerEntry]:
    """Entries in the order in which they were complete. An empty line says that nothing came for a while."""
    parsers: dict[str, Parser] = {
        DNSMASQ_UNIT: Dnsmasq(TFTP_ROOT),
        BOOT_SERVER_UNIT: BootServer(),
        BALANCER_UNIT: Haproxy(),
        REGISTRY_UNIT: Registry(),
        NFS_UNIT: Ganesha(),
    }
    names = _Names(site)
    latest = 0.0
    for line in journal_lines:
        record = _record(line)
        if record is not None:
            latest, unit, message = record
            if unit in parsers:
                yield from map(names.named, parsers[unit].feed(latest, message))
        elif not line.strip():
            for parser in parsers.values():
                yield from map(names.named, parser.flush(latest))
    for parser in parsers.values():
        yield from map(names.named, parser.flush(float("inf")))


class _Names:
    """Whose addresses and MACs are whose."""

    def __init__(self, site: Site) -> None:
        machines = list(everyone(site))
        self._names = {"127.0.0.1": site.helper.name}
        self._names |= {str(machine.address): machine.name for machine in machines}
        self._names |= {machine.mac: machine.name for machine in machines}
        self._addresses = {machine.name: str(machine.address) for machine in machines}

    def named(self, entry: LedgerEntry) -> LedgerEntry:
        client = _printable(entry.client or self._addresses.get(entry.machine or "", ""))
        return replace(
            entry,
            machine=entry.machine if entry.machine in self._addresses else self._names.get(client),
            client=client,
            asked=_printable(entry.asked),
            got=_printable(entry.got),
            because=_printable(entry.because),
        )


def _printable(text: str) -> str:
    """Much of it comes from strangers: nothing in it may move a terminal's cursor, or fill the screen."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "?" for sign in text)


def _record(line: str) -> tuple[float, str, str] | None:
    """Time, unit and message of a record of the journal; None if it is none."""
    try:
        data = json.loads(line)
        seconds = int(data["__REALTIME_TIMESTAMP"]) / 1_000_000
        unit, message = data["_SYSTEMD_UNIT"], data["MESSAGE"]
        if isinstance(message, list):
            # As bytes, because it is not text throughout.
            message = bytes(message).decode(errors="replace")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return (seconds, unit, message) if isinstance(unit, str) and isinstance(message, str) else None
