"""HTTP as far as booting machines speak it."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.web.messages import Request, RequestError, parse_head, response_head, too_long, wanted_range


def request(**headers: str) -> Request:
    return Request("GET", "/x", {name.replace("_", "-"): value for name, value in headers.items()}, keep_alive=True)


def test_a_request_as_ignition_sends_it() -> None:
    head = b"GET /ignition/x.ign HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: Ignition/2.24.0\r\nAccept-Encoding: identity"
    found = parse_head(head)
    assert (found.method, found.target, found.keep_alive) == ("GET", "/ignition/x.ign", True)
    assert found.headers == {"host": "h:8080", "user-agent": "Ignition/2.24.0", "accept-encoding": "identity"}


@pytest.mark.parametrize(
    ("head", "keep"),
    [
        (b"GET / HTTP/1.1", True),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.1\r\nConnection: Close", False),
        (b"HEAD / HTTP/1.0\r\nConnection: Keep-Alive", True),
    ],
)
def test_how_long_a_connection_lasts(head: bytes, keep: bool) -> None:
    assert parse_head(head).keep_alive is keep


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"\x16\x03\x01\x02\x00", 400),
        (b"get / HTTP/1.1", 400),
        (b"GET /a b HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET /\0 HTTP/1.1", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\n folded: line", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\nspace : before", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 5", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5", 405),
        (b"PUT /x HTTP/1.1", 405),
        (b"CONNECT h:1 HTTP/1.1", 405),
        (b"PRI * HTTP/2.0", 505),
    ],
)
def test_what_is_no_good_request(head: bytes, status: int) -> None:
    with pytest.raises(RequestError) as caught:
        parse_head(head)
    assert caught.value.status == status


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_nothing_else_comes_of_garbage(head: bytes) -> None:
    try:
        found = parse_head(b"GET " + head)
    except RequestError:
        return
    assert found.method == "GET"


def test_what_was_too_long() -> None:
    assert too_long(b"GET /" + b"x" * 9000).status == HTTPStatus.REQUEST_URI_TOO_LONG
    assert too_long(b"GET / HTTP/1.1\r\nX: " + b"x" * 9000).status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("", None),
        ("bytes=0-0", (0, 1)),
        ("bytes=2-5", (2, 6)),
        ("bytes=2-", (2, 10)),
        ("bytes=2-99", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("bytes=0-1, 3-4", None),
        ("lines=1-2", None),
        ("bytes=a-b", None),
        ("bytes=" + "9" * 40 + "-", None),
    ],
)
def test_ranges(header: str, part: tuple[int, int] | None) -> None:
    assert wanted_range(request(range=header), 10) == part


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_the_file_does_not_have(header: str) -> None:
    with pytest.raises(ValueError, match="ends before"):
        wanted_range(request(range=header), 10)


def test_a_range_of_what_may_have_changed_is_the_whole() -> None:
    assert wanted_range(request(range="bytes=2-5", if_range='"x"'), 10) is None


def test_a_response() -> None:
    head = response_head(HTTPStatus.OK, {"Content-Length": "3"}, keep_alive=False).decode()
    assert head.startswith("HTTP/1.1 200 OK\r\nDate: ")
    assert head.endswith("\r\nContent-Length: 3\r\nConnection: close\r\n\r\n")
