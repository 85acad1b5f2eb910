"""What a server sends, and what is written down of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from falsework.web.messages import Request, response_head

_SHOWN = 200
"""Characters of a request that are written down."""


@dataclass
class Answer:
    """What is being sent, and what the ledger will say of it."""

    asked: str
    status: HTTPStatus
    head: bytes
    keep_alive: bool
    because: str = ""
    file: int | None = None
    body: bytes = b""
    """Instead of a file."""
    offset: int = 0
    """The next byte of file or body."""
    end: int = 0
    sent: int = 0
    """Bytes of file or body that were taken."""
    machine: str = ""
    """Whose credential is in it; empty if nobody's."""


def sentence(
    asked: str,
    status: HTTPStatus,
    text: str,
    because: str,
    request: Request | None = None,
    more: Mapping[str, str] | None = None,
) -> Answer:
    """An answer of one line. After a request that was none we cannot tell where the next begins."""
    body = text.encode() + b"\n"
    keep_alive = request is not None and request.keep_alive
    headers = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **(more or {})}
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = "GET, HEAD"
    head = response_head(status, headers, keep_alive)
    if request is None or request.method != "HEAD":
        head += body
    return Answer(asked, status, head, keep_alive, because)


def shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def line_for_the_ledger(service: str, client: str, machine: str | None, answer: Answer) -> dict[str, object]:
    """Who, what, with which result, and never the content."""
    line: dict[str, object] = {
        "time": round(time.time(), 3),
        "service": service,
        "client": client,
        "machine": machine,
        "asked": answer.asked,
        "status": answer.status.value,
        "bytes": answer.sent,
    }
    if answer.because:
        line["because"] = answer.because
    return line
