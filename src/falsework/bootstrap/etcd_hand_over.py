"""A master leads etcd before any API server but ours writes to it.

While leadership moves, etcd loses what it is asked to write, and whoever asked waits ten seconds for an error. Nobody
can keep three API servers still for that moment; the one on this machine can be.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from falsework.bootstrap.api_hold import held
from falsework.bootstrap.etcd_health import client_context
from falsework.bootstrap.waiting import Say
from falsework.errors import FalseworkError
from falsework.etcd.gate import EtcdGate
from falsework.etcd.gateway import Gateway
from falsework.etcd.members import Member, View
from falsework.etcd.settings import BOOTSTRAP_MEMBER, CLIENT_PORT
from falsework.kube.connection import Patience

_PATIENCE = Patience(connect=2.0, answer=5.0, whole=5.0)
_QUIET = 1.0
"""Seconds within which etcd is done with what it was asked before."""


class EtcdHandOver:
    def __init__(
        self,
        etcd: Gateway,
        replicas: int,
        say: Say,
        hold: Callable[[], contextlib.AbstractContextManager[None]] = held,
        gate: EtcdGate | None = None,
    ) -> None:
        self._etcd = etcd
        self._replicas = replicas
        self._say = say
        self._hold = hold
        self._gate = gate or EtcdGate()
        self._is_done = False

    def missing(self) -> str | None:
        """Why no master leads yet; None if one does. Hands over as soon as that can be."""
        if self._is_done:
            return None
        reason = self._attempt()
        self._is_done = reason is None
        return reason

    def _attempt(self) -> str | None:
        try:
            listed = View(self._etcd.members())
            bootstrap = listed.named(BOOTSTRAP_MEMBER)
            if bootstrap is None or self._etcd.leader() != bootstrap.id:
                return None
            masters = [member for member in listed.voters if member.is_started and member != bootstrap]
            if wait := self._gate.wait(len(masters), self._replicas):
                return wait.reason
            return self._move(bootstrap)
        except FalseworkError as error:
            return error.one_line

    def _move(self, bootstrap: Member) -> str | None:
        target = self._etcd.look().successor_of(bootstrap)
        if target is None:
            return "no member on a master is healthy"
        with self._hold():
            self._wait_until_quiet()
            self._etcd.move_leadership(bootstrap, target)
        self._say(f"{target.name} leads etcd")
        return None

    def _wait_until_quiet(self) -> None:
        """Until what was written before has been written."""
        deadline, seen = time.monotonic() + _QUIET, ""
        while (index := self._etcd.committed()) != seen and time.monotonic() < deadline:
            seen = index


def local_etcd(tls: Path) -> Gateway:
    """This machine's member."""
    # The same one each time: connections are kept by it.
    context = cache(partial(client_context, tls))
    return Gateway(lambda: [f"https://localhost:{CLIENT_PORT}"], context, _PATIENCE)
