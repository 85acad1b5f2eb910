"""Approving and denying: the condition that `kubectl certificate` writes too, with our reason."""

from __future__ import annotations

from datetime import UTC, datetime

from falsework.kube.client import Client, Object
from falsework.kube.resources import CSRS

APPROVED_REASON = "NodeCSRApprove"
DENIED_REASON = "NodeCSRDeny"


def approve(client: Client, body: Object, message: str, reason: str = APPROVED_REASON) -> Object:
    return _with_condition(client, body, "Approved", reason, message)


def deny(client: Client, body: Object, message: str, reason: str = DENIED_REASON) -> Object:
    return _with_condition(client, body, "Denied", reason, message)


def _with_condition(client: Client, body: Object, kind: str, reason: str, message: str) -> Object:
    """`body` is what was judged, with its version: if the request has changed since, the API refuses."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    }
    status = body.get("status") or {}
    conditions = [*(status.get("conditions") or ()), condition]
    return client.replace(CSRS, {**body, "status": {**status, "conditions": conditions}}, "approval")
