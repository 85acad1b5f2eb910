"""A TFTP transfer: which packet is answered with which."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.machines.firmware.tftp import FileNotServedError, TftpError, Transfer


def data(number: int, content: bytes) -> bytes:
    return struct.pack("!HH", 3, number) + content


def acknowledgement(number: int) -> bytes:
    return struct.pack("!HH", 4, number)


def error(code: int, text: bytes) -> bytes:
    return struct.pack("!HH", 5, code) + text + b"\0"


def options(**values: object) -> bytes:
    return b"\0\6" + b"".join(f"{name}\0{value}\0".encode() for name, value in values.items())


def ended(transfer: Transfer) -> bool:
    return transfer.finished


@pytest.fixture
def transfer() -> Transfer:
    return Transfer("pxelinux.cfg/default", limit=2000)


def test_the_question(transfer: Transfer) -> None:
    assert transfer.last_sent == b"\0\1pxelinux.cfg/default\0octet\0blksize\0" + b"1432\0tsize\0" + b"0\0"


def test_a_server_that_knows_no_options(transfer: Transfer) -> None:
    assert transfer.received(data(1, b"a" * 512)) == acknowledgement(1)
    assert not ended(transfer)
    assert transfer.received(data(2, b"b")) == acknowledgement(2)
    assert ended(transfer)
    assert transfer.content == b"a" * 512 + b"b"


def test_a_server_with_options(transfer: Transfer) -> None:
    assert transfer.received(options(blksize=1000, tsize=1001)) == acknowledgement(0)
    assert transfer.last_sent == acknowledgement(0)
    assert transfer.received(options(blksize=1000, tsize=1001)) == acknowledgement(0), "our answer was lost"
    transfer.received(data(1, b"a" * 1000))
    assert transfer.received(options(blksize=8)) is None, "too late"
    transfer.received(data(2, b"b"))
    assert ended(transfer)
    assert len(transfer.content) == 1001


def test_a_file_that_fills_its_last_block_ends_with_an_empty_one(transfer: Transfer) -> None:
    transfer.received(data(1, b"a" * 512))
    assert not ended(transfer)
    transfer.received(data(2, b""))
    assert ended(transfer)
    assert len(transfer.content) == 512


def test_blocks_sent_again_or_out_of_turn(transfer: Transfer) -> None:
    assert transfer.received(data(0, b"zero")) is None
    assert transfer.received(data(2, b"b" * 512)) is None
    transfer.received(data(1, b"a" * 512))
    assert transfer.received(data(1, b"a" * 512)) == acknowledgement(1)
    transfer.received(data(2, b"b" * 512))
    assert transfer.received(data(1, b"a" * 512)) is None
    assert transfer.content == b"a" * 512 + b"b" * 512


def test_block_numbers_begin_again() -> None:
    transfer = Transfer("large", limit=1 << 20)
    transfer.received(options(blksize=8))
    for number in range(1, 70001):
        assert transfer.received(data(number & 0xFFFF, b"12345678")) == acknowledgement(number & 0xFFFF)
    transfer.received(data(70001 & 0xFFFF, b""))
    assert ended(transfer)
    assert len(transfer.content) == 8 * 70000


def test_a_file_that_is_not_there(transfer: Transfer) -> None:
    with pytest.raises(FileNotServedError) as caught:
        transfer.received(error(1, b"file not found"))
    assert "pxelinux.cfg/default" in caught.value.what
    assert "file not found" in (caught.value.cause or "")


def test_another_error_is_shown_without_what_terminals_obey(transfer: Transfer) -> None:
    with pytest.raises(TftpError) as caught:
        transfer.received(error(2, b"\x1b[31mno\nentry"))
    assert not isinstance(caught.value, FileNotServedError)
    assert caught.value.cause == "it says: [31mnoentry"


@pytest.mark.parametrize(
    "packet", [options(tsize=2001), options(blksize=2000), options(blksize="x"), options(tsize=-1)]
)
def test_options_that_are_not_taken(transfer: Transfer, packet: bytes) -> None:
    with pytest.raises(TftpError):
        transfer.received(packet)


def test_a_file_that_is_too_large(transfer: Transfer) -> None:
    for number in (1, 2, 3):
        transfer.received(data(number, b"a" * 512))
    with pytest.raises(TftpError, match="more than 2000 bytes"):
        transfer.received(data(4, b"a" * 512))


@settings(deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=20), st.builds(data, st.integers(0, 3), st.binary(max_size=600)))))
def test_any_packets_are_read_without_harm(packets: list[bytes]) -> None:
    transfer = Transfer("file", limit=2000)
    for packet in packets:
        try:
            transfer.received(packet)
        except TftpError:
            break
    assert len(transfer.content) <= 2000
