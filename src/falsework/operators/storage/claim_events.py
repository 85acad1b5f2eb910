"""Word to whoever looks at a claim: `kubectl describe pvc` shows it."""

from __future__ import annotations

import hashlib

from falsework.kube.client import ApiError, Client
from falsework.kube.resources import EVENTS
from falsework.operators.runtime.conditions import now
from falsework.operators.storage.claims import PROVISIONER, Claim

_LONGEST = 200
"""Signs of a claim's name: an event's may be no longer than a claim's."""


class ClaimEvents:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._told: set[str] = set()

    def warning(self, claim: Claim, reason: str, message: str) -> None:
        """Once: its name is made of what it says, so that a restarted operator does not repeat it either."""
        digest = hashlib.sha256(f"{claim.uid} {reason} {message}".encode()).hexdigest()[:16]
        if digest in self._told:
            return
        moment = now()
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{claim.name[:_LONGEST].rstrip('-.')}.{digest}", "namespace": claim.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim.name,
                "namespace": claim.namespace,
                "uid": claim.uid,
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": PROVISIONER},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        try:
            self._client.create(EVENTS, body)
        except ApiError as error:
            # It is there already, or the claim's namespace is about to go.
            if not error.is_conflict and error.status != 403:
                raise
        self._told.add(digest)
