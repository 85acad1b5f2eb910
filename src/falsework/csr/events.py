"""Kubernetes Events about requests that are not approved: one for each reason, and never more than others can bear."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime

from falsework.csr.request import Request
from falsework.kube.client import Object

COMPONENT = "approve-csr"
NAMESPACE = "default"
"""Where events about what is in no namespace are."""


def event(request: Request, reason: str, message: str) -> Object:
    """Its name is made of what it says: told again, by a restarted approver too, it is the same event."""
    told = hashlib.sha256(f"{request.uid} {reason} {message}".encode()).hexdigest()[:16]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{request.name[:200]}.{told}", "namespace": NAMESPACE},
        "involvedObject": {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "name": request.name,
            "uid": request.uid,
        },
        "type": "Warning",
        "reason": reason,
        "message": message[:1000],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


class Budget:
    """How many events may be told: a few at once, then as many as time allows; for each requester and for all."""

    OWN, OWN_PER_SECOND = 10.0, 0.1
    ALL, ALL_PER_SECOND = 100.0, 2.0
    MOST_REQUESTERS = 1000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all = (self.ALL, clock())
        self._own: dict[str, tuple[float, float]] = {}

    def take(self, requester: str) -> bool:
        now = self._clock()
        own = _grown(self._own.pop(requester, (self.OWN, now)), now, self.OWN, self.OWN_PER_SECOND)
        everyone = _grown(self._all, now, self.ALL, self.ALL_PER_SECOND)
        allowed = own >= 1 and everyone >= 1
        self._own[requester] = (own - 1 if allowed else own, now)
        self._all = (everyone - 1 if allowed else everyone, now)
        while len(self._own) > self.MOST_REQUESTERS:
            # Whoever was heard longest ago.
            del self._own[next(iter(self._own))]
        return allowed


def _grown(state: tuple[float, float], now: float, most: float, per_second: float) -> float:
    return min(most, state[0] + (now - state[1]) * per_second)
