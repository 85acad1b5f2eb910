"""Asking etcd how it is, with the client certificate the machine has."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path

_PATIENCE = 2.0


def client_context(tls: Path) -> ssl.SSLContext:
    """OSError if the machine's files are not there, or are no certificate."""
    context = ssl.create_default_context(cafile=str(tls / "etcd-ca-bundle.crt"))
    context.load_cert_chain(tls / "etcd-client.crt", tls / "etcd-client.key")
    return context


def unhealthy(tls: Path, port: int) -> str | None:
    """Why etcd on this machine is not healthy; None if it is."""
    try:
        connection = http.client.HTTPSConnection("localhost", port, timeout=_PATIENCE, context=client_context(tls))
        try:
            connection.request("GET", "/health")
            answer = json.loads(connection.getresponse().read(65536))
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"etcd does not answer on port {port}: {error}"
    if answer.get("health") == "true":
        return None
    return f"etcd says it is not healthy: {answer.get('reason') or 'without a reason'}"
