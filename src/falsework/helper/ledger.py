"""The ledger: every request of every service of the helper, read from the helper's journal when somebody looks, and
those to the Machine Config Servers, read from their own files.

There is no daemon and no second copy: what the services write down is all there is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from falsework.helper.boot import TFTP_ROOT
from falsework.helper.boot_server_files import UNIT as BOOT_SERVER_UNIT
from falsework.helper.ledger_entry import LedgerEntry, Service
from falsework.helper.ledger_parsers import Dnsmasq, Ganesha, Haproxy, OwnServer, Parser, Registry
from falsework.site.model import Site
from falsework.site.records import everyone

DNSMASQ_UNIT = "dnsmasq.service"
BALANCER_UNIT = "haproxy.service"
REGISTRY_UNIT = "registry.service"
NFS_UNIT = "nfs-ganesha.service"
UNITS = (DNSMASQ_UNIT, BOOT_SERVER_UNIT, BALANCER_UNIT, REGISTRY_UNIT, NFS_UNIT)

CONFIG_SERVER_FILES = ("/var/lib/falsework/mcs/ledger.jsonl.1", "/var/lib/falsework/mcs/ledger.jsonl")
"""On the machines where one runs, the older one first."""
ReadFile = Callable[[str, str], bytes | None]
"""A machine's file, if the machine is on and has it."""

_ITSELF = "127.0.0.1"
_LOOKING = 1.0
"""Seconds between two looks at other machines."""
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


def read(
    journal_lines: Iterable[str], site: Site, config_servers: ConfigServers | None = None
) -> Iterator[LedgerEntry]:
    """Entries in the order in which they were complete. An empty line says that nothing came for a while: then, and at
    the end, the Machine Config Servers are looked at too."""
    parsers: dict[str, Parser] = {
        DNSMASQ_UNIT: Dnsmasq(TFTP_ROOT),
        BOOT_SERVER_UNIT: OwnServer(Service.HTTP),
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
            if config_servers is not None:
                yield from config_servers.now_and_then()
    for parser in parsers.values():
        yield from map(names.named, parser.flush(float("inf")))
    if config_servers is not None:
        yield from config_servers.news()


class ConfigServers:
    """What the Machine Config Servers of some machines have written down."""

    def __init__(self, site: Site, machines: Sequence[str], read: ReadFile) -> None:
        self._names, self._machines, self._read = _Names(site), machines, read
        self._last: dict[str, str] = {}
        self._looked = 0.0

    def now_and_then(self) -> list[LedgerEntry]:
        """For whoever asks all the time: a look into a machine is not for nothing."""
        return self.news() if time.monotonic() - self._looked > _LOOKING else []

    def news(self) -> list[LedgerEntry]:
        """What has come since the last time."""
        self._looked = time.monotonic()
        parser = OwnServer(Service.MCS)
        return [
            # Who comes from 127.0.0.1 is the machine itself, and not the helper.
            self._names.named(replace(entry, machine=machine) if entry.client == _ITSELF else entry)
            for machine in self._machines
            for line in self._new_lines(machine)
            for entry in parser.feed(0.0, line)
        ]

    def _new_lines(self, machine: str) -> list[str]:
        content = b"".join(filter(None, (self._read(machine, path) for path in CONFIG_SERVER_FILES)))
        lines = content.decode(errors="replace").split("\n")[:-1]
        last = self._last.get(machine)
        if lines:
            self._last[machine] = lines[-1]
        for place in range(len(lines) - 1, -1, -1):
            if lines[place] == last:
                return lines[place + 1 :]
        return lines


class _Names:
    """Whose addresses and MACs are whose."""

    def __init__(self, site: Site) -> None:
        machines = list(everyone(site))
        self._names = {_ITSELF: site.helper.name}
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
