"""The lab's way out, for a site that wants one: slirp4netns, a network stack in a process.

It speaks to the outside like any other program of the host. So the host needs no address, no rule, no setting for it:
what forwards and masquerades is in the lab's own namespace. Its link there lives only as long as the process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.lab.folder import NETWORK, Lab
from falsework.lab.journal import Journal, Thing
from falsework.machines import share
from falsework.process import CommandError, detach, run
from falsework.site.model import Site

KIND = "process"
TAP = "nat0"
_PROGRAM = "slirp4netns"
PROGRAMS = (_PROGRAM, "nft")
_TABLE = "falsework_nat"
_RULES = (
    f"add table ip {_TABLE}; flush table ip {_TABLE}; "
    f"add chain ip {_TABLE} postrouting {{ type nat hook postrouting priority srcnat; }}; "
    f'add rule ip {_TABLE} postrouting oifname "{TAP}" masquerade'
)
_RANGES = tuple(
    IPv4Network(cidr) for cidr in ("10.0.2.0/24", "172.31.254.0/24", "192.168.254.0/24", "100.127.254.0/24")
)
_PATIENCE = 10.0


class Nat:
    def __init__(self, site: Site, lab: Lab, journal: Journal, *, host_loopback: bool = False) -> None:
        """With `host_loopback` the lab reaches what listens on the host's 127.0.0.1. Much there asks nobody for a
        password, because only the host's own people can come: machines that run anything must not."""
        self._wanted = site.lab.nat
        self._lab = lab
        self._journal = journal
        self._path = lab.netns_path(NETWORK)
        self._words = command(site, self._path, host_loopback)

    def plan(self, tap_is_up: bool) -> list[str]:
        """What `build` would do; `tap_is_up` says whether the lab has the link that leads outside."""
        running = [words for _, words in processes(_PROGRAM, str(self._path))]
        if not self._wanted:
            return [f"end of {_PROGRAM}: the site wants no way out"] if running else []
        missing = [] if tap_is_up and running == [self._words] else [f"{_PROGRAM} as the way out"]
        return missing if self._path.exists() and self._has_rules() else [*missing, f"masquerading through {TAP}"]

    def build(self, tap_is_up: bool) -> list[str]:
        planned = self.plan(tap_is_up)
        if not self._wanted:
            if planned:
                end(_PROGRAM, str(self._path))
            return planned
        if not self._has_rules():
            run(_inside(self._path, ("nft", _RULES)))
        if not (tap_is_up and [words for _, words in processes(_PROGRAM, str(self._path))] == [self._words]):
            self._start()
        return planned

    def _start(self) -> None:
        end(_PROGRAM, str(self._path))
        self._journal.creating(KIND, _PROGRAM, argument=str(self._path))
        log = self._lab.root / "nat.log"
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        log.write_bytes(b"")
        # Its sandbox takes all mounts away, and /run/netns is shared: without a mount namespace that only listens,
        # every named namespace of the host would be gone.
        words = ("unshare", "--mount", "--propagation", "slave", *self._words)
        detach(share.outliving_logins(self._lab, self._journal, NETWORK, words), log=log)
        deadline = time.monotonic() + _PATIENCE
        while not self._is_ready():
            if time.monotonic() > deadline:
                raise FalseworkError(
                    f"{_PROGRAM} gave the lab no way out in {_PATIENCE:.0f} s",
                    cause="; ".join(log.read_text(errors="replace").splitlines()[-3:]) or None,
                    fix="set `nat: false` in site.yaml for a lab without one, or run the same command again",
                )
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        try:
            route = run(("ip", "-netns", self._lab.netns(NETWORK), "route", "show", "default", "dev", TAP))
        except CommandError:
            return False
        return bool(route.output.strip())

    def _has_rules(self) -> bool:
        try:
            return "masquerade" in run(_inside(self._path, ("nft", "list", "table", "ip", _TABLE))).output
        except CommandError:
            return False


def command(site: Site, path: Path, host_loopback: bool = False) -> tuple[str, ...]:
    # Names are asked for where the site says; the host's own name servers are its own affair.
    options = ("--configure", "--mtu=1500", "--disable-dns", "--enable-sandbox", f"--cidr={range_for(site)}")
    closed = () if host_loopback else ("--disable-host-loopback",)
    return (_PROGRAM, *options, *closed, "--netns-type=path", str(path), TAP)


def range_for(site: Site) -> IPv4Network:
    """Addresses between the lab and the process, which nobody else sees, but the site's own must not be among them."""
    networking = site.networking
    taken = [
        site.lab.cidr,
        *networking.machine_networks,
        *networking.service_networks,
        *(network.cidr for network in networking.cluster_networks),
    ]
    used = [network for network in taken if isinstance(network, IPv4Network)]
    for candidate in _RANGES:
        if not any(candidate.overlaps(network) for network in used):
            return candidate
    raise FalseworkError(
        "no range is left for the lab's way out",
        cause=f"the site's networks overlap all of {', '.join(map(str, _RANGES))}",
        fix="make one of the site's networks smaller, or set `nat: false` in site.yaml",
    )


def end_process(thing: Thing) -> None:
    """For a process in the journal: end it, wherever it is by now."""
    end(thing.name, thing.detail["argument"])


def end(program: str, argument: str) -> None:
    for pid, _ in processes(program, argument):
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                # Between looking and opening the number may have gone to another.
                if _words_of(pid)[:1] == (program,):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    select.select([handle], [], [], _PATIENCE)
            finally:
                os.close(handle)


def processes(program: str, argument: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Those that were started as `program` with this among their words: a lab's names are in no other's."""
    for folder in Path("/proc").glob("[0-9]*"):
        words = _words_of(int(folder.name))
        if words[:1] == (program,) and argument in words:
            yield int(folder.name), words


def _words_of(pid: int) -> tuple[str, ...]:
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1])
    except (FileNotFoundError, ProcessLookupError):
        return ()


def _inside(path: Path, words: Sequence[str]) -> tuple[str, ...]:
    return ("nsenter", f"--net={path}", "--", *words)
