"""The PROXY protocol, as load balancers speak it and as others might."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from falsework.web import proxy_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def version_2(command: int, family: int, payload: bytes = b"") -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(payload)) + payload


def addresses(source: str, target: str, more: bytes = b"") -> bytes:
    return ip_address(source).packed + ip_address(target).packed + struct.pack("!HH", 1, 2) + more


def taken(stream: bytes) -> bytes:
    """The header, read as a server does it."""
    header = stream[:1]
    while count := proxy_header.missing(header):
        header += stream[len(header) : len(header) + count]
    return header


@pytest.mark.parametrize(
    ("header", "source"),
    [
        (version_2(0x21, 0x11, addresses("192.168.126.101", "192.168.126.2")), "192.168.126.101"),
        (version_2(0x21, 0x11, addresses("10.0.0.1", "10.0.0.2", b"\x20\0\x03abc")), "10.0.0.1"),
        (version_2(0x21, 0x21, addresses("2001:db8::1", "2001:db8::2")), "2001:db8::1"),
        (version_2(0x21, 0x21, addresses("::ffff:10.0.0.1", "::ffff:10.0.0.2")), "10.0.0.1"),
        (version_2(0x20, 0x00), None),
        (version_2(0x20, 0x11, addresses("10.0.0.1", "10.0.0.2")), None),
        (version_2(0x21, 0x00), None),
        (b"PROXY TCP4 192.168.126.101 192.168.126.2 40000 22623\r\n", "192.168.126.101"),
        (b"PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n", "2001:db8::1"),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN 1.2.3.4 what ever\r\n", None),
    ],
)
def test_who_is_meant_and_where_the_header_ends(header: bytes, source: str | None) -> None:
    assert proxy_header.begins(header[:1])
    assert taken(header + b"\x16\x03\x01 and more") == header
    assert proxy_header.source(header) == source


@pytest.mark.parametrize(
    "header",
    [
        version_2(0x31, 0x11, addresses("10.0.0.1", "10.0.0.2")),
        version_2(0x22, 0x11, addresses("10.0.0.1", "10.0.0.2")),
        version_2(0x21, 0x11, b"short"),
        version_2(0x21, 0x21, addresses("10.0.0.1", "10.0.0.2")),
        SIGNATURE + b"\x21\x11\xff\xff",
        b"PROXY TCP4 10.0.0.256 10.0.0.2 1 2\r\n",
        b"PROXY TCP4 ::1 ::2 1 2\r\n",
        b"PROXY TCP4 10.0.0.1\r\n",
        b"PROXY " + b"x" * 200,
        b"POST / HTTP/1.1\r\n",
        b"\r\nhello there, I am no header",
    ],
)
def test_what_is_no_good_header(header: bytes) -> None:
    with pytest.raises(ValueError, match="PROXY"):
        proxy_header.source(taken(header))


@pytest.mark.parametrize("first", [b"\x16\x03\x01", b"GET / ", b"HEAD", b"\0", b"p"])
def test_what_does_not_begin_like_one(first: bytes) -> None:
    assert not proxy_header.begins(first)


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.binary(min_size=1, max_size=300), st.binary(max_size=60).map(SIGNATURE.__add__)))
@example(SIGNATURE)
@example(b"PROXY \r\n")
def test_nothing_but_a_refusal_comes_of_garbage(stream: bytes) -> None:
    header = stream[:1]
    try:
        while (count := proxy_header.missing(header)) and len(header) < len(stream):
            header += stream[len(header) : len(header) + count]
        if count == 0:
            source = proxy_header.source(header)
            assert source is None or str(ip_address(source)) == source
    except ValueError:
        pass
    assert len(header) <= 16 + 1024
