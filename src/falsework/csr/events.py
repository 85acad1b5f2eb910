"""Kubernetes Events about requests that are not approved: one for each reason."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from falsework.csr.request import Request
from falsework.kube.client import Object

NAMESPACE = "default"
"""Where events about what is in no namespace are."""


def event(request: Request, reason: str, message: str, component: str) -> Object:
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
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
