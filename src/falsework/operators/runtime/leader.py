"""One at a time: whoever holds the Lease works, the others wait.

A holder that is gone is known by a Lease nobody renews: the time counts here, from when the last change was seen, so
that the clocks of two hosts need not agree. A holder that ends gives the Lease back, and the next one need not wait.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from falsework.kube.client import ApiError, Client, Object, Unreachable
from falsework.kube.resources import LEASES
from falsework.operators.runtime.log import Changes, Say

_QUICK = 0.1
"""Seconds until a lease that nobody holds, because there is no place for it yet, is asked for again."""


def own_identity() -> str:
    """The pod's name, if it is told: a container that was restarted goes on at once, and no two pods have the same.
    The host's name and the process's number are alike in all pods that share a host's network."""
    return os.environ.get("POD_NAME") or f"{socket.gethostname()}_{os.getpid()}"


class Leader:
    """`lost` is called when the Lease could not be kept: then the work has to end at once."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        say: Say,
        *,
        lost: Callable[[], None],
        lasts: float = 30.0,
        renew: float = 8.0,
        retry: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._where = (namespace, name)
        self._identity = identity
        self._say = say
        self._on_loss = lost
        self._lasts, self._renew, self._retry = lasts, renew, retry
        self._clock = clock
        self._seen: tuple[Any, ...] = ()
        self._seen_at = 0.0
        self._held: Object | None = None
        """The Lease as we have left it: as long as nobody else touches it, there is no need to read it."""
        self._ended = threading.Event()
        self._kept = 0.0
        self._keeper: threading.Thread | None = None
        self._losing = threading.Lock()
        self.lost = False

    def acquire(self, stop: threading.Event) -> bool:
        """Whether it is ours now; False only when told to stop."""
        changes = Changes(self._say)
        lease = "/".join(self._where)
        while not stop.is_set():
            began = self._clock()
            try:
                holder = self._try()
                waits, pause = f"is held by {holder}", self._retry
            except (ApiError, Unreachable) as error:
                holder, waits = "", f"cannot be had: {error.cause or error.what}"
                pause = min(_QUICK, self._retry)
            if holder is None:
                self._say(f"Leading: holds the lease {lease} as {self._identity}")
                self._kept = began
                self._keeper = threading.Thread(target=self._keep, name="keep the lease", daemon=True)
                self._keeper.start()
                threading.Thread(target=self._guard, name="guard the lease", daemon=True).start()
                return True
            changes.say("waiting", f"Waiting to lead: the lease {lease} {waits}")
            stop.wait(pause)
        return False

    def release(self) -> None:
        """Give it back, so that the next one can go on at once."""
        self._ended.set()
        if self._keeper is None:
            return
        self._keeper.join(self._lasts / 3)
        if self._keeper.is_alive():
            return  # It waits for an API that does not answer: nothing can be given back.
        try:
            lease = self._read()
            if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
                self._client.replace(LEASES, lease)
        except (ApiError, Unreachable):
            return  # It runs out by itself.

    def _try(self) -> str | None:
        """Take it if it is free, or keep it; otherwise, who has it."""
        if self._renewed():
            return None
        lease = self._read()
        if lease is None:
            namespace, name = self._where
            body = {
                "apiVersion": LEASES.api_version,
                "kind": "Lease",
                "metadata": {"name": name, "namespace": namespace},
                "spec": self._spec({}),
            }
            self._held = self._client.create(LEASES, body, namespace)
            return None
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        seen = (holder, spec.get("renewTime"), spec.get("leaseTransitions"))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()
        lasts = float(spec.get("leaseDurationSeconds") or self._lasts)
        if holder and holder != self._identity and self._clock() < self._seen_at + lasts:
            return holder
        # With the version that was read: of two that take it, one is refused.
        self._held = self._client.replace(LEASES, {**lease, "spec": self._spec(spec)})
        return None

    def _renewed(self) -> bool:
        """Whether it is as we have left it, and renewed by that."""
        held, self._held = self._held, None
        if held is None:
            return False
        try:
            self._held = self._client.replace(LEASES, {**held, "spec": self._spec(held["spec"])})
        except ApiError as error:
            if not error.is_conflict and not error.is_missing:
                raise
            return False
        return True

    def _spec(self, old: Object) -> Object:
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        ours = old.get("holderIdentity") == self._identity
        return {
            **old,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._lasts)),
            "renewTime": moment,
            "acquireTime": old.get("acquireTime") if ours else moment,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (0 if ours else 1),
        }

    def _read(self) -> Object | None:
        namespace, name = self._where
        try:
            return self._client.get(LEASES, name, namespace)
        except ApiError as error:
            if not error.is_missing:
                raise
            return None

    def _keep(self) -> None:
        pause = self._renew
        while not self._ended.wait(pause):
            pause = self._retry
            began = self._clock()
            try:
                holder = self._try()
            except (ApiError, Unreachable):
                continue
            if holder is not None:
                self._lose(f" to {holder}")
                return
            self._kept, pause = began, self._renew

    def _guard(self) -> None:
        """Even while a renewal waits for an answer: before the lease runs out for the others, never two at a time."""
        while not self._ended.wait(self._left()):
            if self._left() <= 0:
                self._lose("")
                return

    def _left(self) -> float:
        return max(0.0, self._kept + self._lasts * 2 / 3 - self._clock())

    def _lose(self, to: str) -> None:
        with self._losing:
            if self._ended.is_set():
                return
            self._ended.set()
        self._say(f"Lost the lease {'/'.join(self._where)}{to}")
        self.lost = True
        self._on_loss()
