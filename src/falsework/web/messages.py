"""As much of HTTP/1.1 as booting machines speak: GET and HEAD, ranges, no bodies. The standard library alone."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

HEAD_LIMIT = 8192
"""Bytes of a request, all of its headers included. Firmware and Ignition need a few hundred."""
HEAD_END = b"\r\n\r\n"

_REQUEST_LINE = re.compile(r"([A-Z]{1,16}) ([!-~]+) HTTP/([0-9])\.([0-9])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class RequestError(Exception):
    """What came is no request that can be answered."""

    def __init__(self, status: HTTPStatus, because: str) -> None:
        super().__init__(because)
        self.status = status
        self.because = because


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: Mapping[str, str]
    """Names in lower case."""
    keep_alive: bool


def too_long(received: bytes | bytearray) -> RequestError:
    """What has come so far is no complete request, and more than any has."""
    if b"\r\n" in received:
        return RequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
    return RequestError(HTTPStatus.REQUEST_URI_TOO_LONG, "the first line is too long")


def parse_head(head: bytes) -> Request:
    """A request up to, and without, the empty line."""
    first, *others = head.decode("latin-1").split("\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if not line:
        raise RequestError(HTTPStatus.BAD_REQUEST, "that is not HTTP")
    method, target, major, minor = line.groups()
    if major != "1":
        raise RequestError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "that is not HTTP/1")
    if method not in ("GET", "HEAD"):
        raise RequestError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are served")
    headers = _headers(others)
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        raise RequestError(HTTPStatus.BAD_REQUEST, "the request has a body")
    wish = headers.get("connection", "" if minor != "0" else "close").lower()
    return Request(method, target, headers, keep_alive="close" not in wish)


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.fullmatch(line)
        if not found:
            raise RequestError(HTTPStatus.BAD_REQUEST, "a header is not one")
        name = found[1].lower()
        headers[name] = f"{headers[name]}, {found[2]}" if name in headers else found[2]
    return headers


def wanted_range(request: Request, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last; None for the whole file.

    Several ranges at once, and ranges of a file that may have changed since, get the whole, as the standard allows.
    ValueError if the file has nothing there.
    """
    found = _RANGE.fullmatch(request.headers.get("range", ""))
    if not found or found[1] == found[2] == "" or "if-range" in request.headers:
        return None
    first, last = found.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if first and last and int(last) < start:
        return None
    if start >= size:
        raise ValueError("the file ends before")
    return start, end


def response_head(status: HTTPStatus, headers: Mapping[str, str], keep_alive: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
    ]
    return "\r\n".join(lines).encode("latin-1") + HEAD_END
