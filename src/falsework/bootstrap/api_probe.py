"""Whether an API server answers, and whether it says it is ready, as a load balancer asks it."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

from falsework import tls
from falsework.kube.client import Client, Unreachable

_PATIENCE = 3.0


def not_ready(host: str, port: int, authority: Path | None) -> str | None:
    """Why not, or None if it is. Without an `authority` nobody's certificate is looked at: nothing is told either."""
    try:
        context = ssl.create_default_context(cafile=str(authority)) if authority else tls.unchecked()
        connection = http.client.HTTPSConnection(host, port, timeout=_PATIENCE, context=context)
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            body = response.read(65536)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return f"https://{host}:{port}/readyz does not answer: {error}"
    return refusal(response.status, body)


def silent(client: Client) -> str | None:
    """Why there is no answer; any answer will do."""
    try:
        client.raw("GET", "/readyz")
    except Unreachable as error:
        return error.one_line
    return None


def refusal(status: int, body: bytes) -> str | None:
    """What an answer to /readyz means: None for ready, else the checks that fail."""
    if status == 200:
        return None
    failing = [line[3:].split(" ")[0] for line in body.decode(errors="replace").splitlines() if line.startswith("[-]")]
    return f"it answers {status}" + (f", not ready: {', '.join(failing)}" if failing else "")
