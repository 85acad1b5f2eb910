"""DHCP on the wire: what is sent, what is understood, and that nothing sent by anybody can do harm."""

from __future__ import annotations

import struct
from dataclasses import asdict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from falsework.machines.firmware import dhcp_packet
from falsework.machines.firmware.dhcp_packet import ACK, NAK, OFFER, Lease, Reply

XID, MAC = b"abcd", bytes.fromhex("5254006dcd8a")
SERVER = bytes([192, 168, 126, 2])
OPTIONS = {
    53: bytes([OFFER]),
    54: SERVER,
    51: struct.pack("!I", 14400),
    1: bytes([255, 255, 255, 0]),
    3: bytes([192, 168, 126, 1]),
    6: SERVER + bytes([192, 168, 126, 3]),
    12: b"master-0.lab.falsework.test",
    15: b"lab.falsework.test",
    # One domain, and a second one that ends as the first does.
    119: b"\x03lab\x09falsework\x04test\x00\x04apps\xc0\x00",
}
LEASE = Lease(
    address="192.168.126.101",
    prefix_length=24,
    router="192.168.126.1",
    name_servers=("192.168.126.2", "192.168.126.3"),
    search=("lab.falsework.test", "apps.lab.falsework.test"),
    hostname="master-0.lab.falsework.test",
    server="192.168.126.2",
    next_server="192.168.126.2",
    boot_file="pxelinux.0",
    seconds=14400,
)


def encoded(options: dict[int, bytes]) -> bytes:
    return b"".join(bytes([code, len(value)]) + value for code, value in options.items())


def answer(
    options: dict[int, bytes] | None = None,
    *,
    xid: bytes = XID,
    mac: bytes = MAC,
    op: int = 2,
    next_server: bytes = SERVER,
    file: bytes = b"pxelinux.0",
    cookie: bytes = b"\x63\x82\x53\x63",
) -> bytes:
    yours = bytes([192, 168, 126, 101])
    head = struct.pack("!BBBB4sHH4x4s4s4x16s64x128s", op, 1, 6, 0, xid, 0, 0, yours, next_server, mac, file)
    return head + cookie + encoded(OPTIONS if options is None else options) + b"\xff"


def reply(payload: bytes) -> Reply | None:
    return dhcp_packet.reply_to(XID, MAC, payload)


def lease(payload: bytes) -> Lease | None:
    found = reply(payload)
    return found.lease if found else None


def test_an_offer_is_understood() -> None:
    assert reply(answer()) == Reply(OFFER, LEASE, SERVER)


@pytest.mark.parametrize(
    "other",
    [
        answer(xid=b"abce"),
        answer(mac=bytes.fromhex("5254006dcd8b")),
        answer(op=1),
        answer(cookie=b"\x63\x82\x53\x64"),
        answer({**OPTIONS, 54: b"\x01"}),
        answer({key: value for key, value in OPTIONS.items() if key != 53}),
        answer()[:239],
        # An option that says it is longer than the packet.
        answer()[:-1] + bytes([12, 200, 65]),
        answer()[:-1] + bytes([12]),
    ],
)
def test_what_is_not_for_us_is_nothing(other: bytes) -> None:
    assert reply(other) is None


@pytest.mark.parametrize(
    "options",
    [
        {1: b"\xff\xff\xff"},
        {1: b"\xff\x00\xff\x00"},
        {1: bytes(4)},
        {51: b"\x01"},
    ],
)
def test_an_offer_that_says_too_little_is_no_lease(options: dict[int, bytes]) -> None:
    assert lease(answer({**OPTIONS, **options})) is None


def test_a_refusal_needs_no_lease() -> None:
    assert reply(answer({53: bytes([NAK]), 54: SERVER})) == Reply(NAK, None, SERVER)


@pytest.mark.parametrize("text", [b"two words", b"line\nbreak", b"\x1b[31m", b"-dash", b"\xff", b""])
def test_names_with_strange_signs_are_dropped(text: bytes) -> None:
    found = lease(answer({**OPTIONS, 12: text, 15: text, 119: b""}, file=text + b" "))
    assert found is not None
    assert (found.hostname, found.search, found.boot_file) == ("", (), "")


def test_the_boot_file_and_its_server_may_be_options() -> None:
    options = {**OPTIONS, 66: b"192.168.126.9", 67: b"folder/pxelinux.0\0"}
    found = lease(answer(options, next_server=bytes(4), file=b""))
    assert found is not None
    assert (found.next_server, found.boot_file) == ("192.168.126.9", "folder/pxelinux.0")


@pytest.mark.parametrize("name", [b"tftp.example", b"999.1.1.1", b"1.2.3", b""])
def test_a_boot_server_without_an_address_is_the_dhcp_server(name: bytes) -> None:
    found = lease(answer({**OPTIONS, 66: name}, next_server=bytes(4)))
    assert found is not None
    assert found.next_server == "192.168.126.2"


def test_options_may_go_on_in_the_field_for_the_file() -> None:
    more = encoded({67: b"pxelinux.0", 12: OPTIONS[12]}) + b"\xff"
    options = {key: value for key, value in OPTIONS.items() if key != 12}
    assert lease(answer({**options, 52: b"\x01"}, file=more)) == LEASE


def test_a_long_option_comes_in_pieces() -> None:
    pieces = answer()[:-1] + encoded({6: bytes([192, 168, 126, 4])}) + b"\xff"
    found = lease(pieces)
    assert found is not None
    assert found.name_servers == ("192.168.126.2", "192.168.126.3", "192.168.126.4")


@pytest.mark.parametrize("data", [b"\xc0\x00", b"\x03lab\xc0\x00", b"\x03lab", b"\x40abc", b"\xc0", b"\x01a\xc0\x02"])
def test_a_search_list_that_makes_no_sense_is_left_out(data: bytes) -> None:
    found = lease(answer({**OPTIONS, 119: data}))
    assert found is not None
    assert found.search == ("lab.falsework.test",)


def test_what_is_sent_is_a_whole_packet_of_a_pxe_client() -> None:
    packet = dhcp_packet.broadcast(dhcp_packet.request(XID, MAC, 3, bytes([192, 168, 126, 101]), SERVER))
    assert packet[12:20] == bytes(4) + b"\xff" * 4
    assert int.from_bytes(packet[2:4], "big") == len(packet)
    assert dhcp_packet._checksum(packet[:20]) == 0
    pseudo = packet[12:20] + struct.pack("!BBH", 0, 17, len(packet) - 20)
    assert dhcp_packet._checksum(pseudo + packet[20:]) == 0
    assert struct.unpack("!HH", packet[20:24]) == (68, 67)
    payload = packet[28:]
    assert (payload[4:8], payload[28:34]) == (XID, MAC)
    options = dhcp_packet._options(payload[240:])
    assert options is not None
    assert (options[53], options[50], options[54]) == (b"\x03", bytes([192, 168, 126, 101]), SERVER)
    assert (options[60], options[93]) == (b"PXEClient:Arch:00000:UNDI:002001", b"\0\0")


def from_server(payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", 67, 68, 8 + len(payload), 0) + payload
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, SERVER, b"\xff" * 4) + udp


def test_the_payload_is_found_and_padding_is_not_part_of_it() -> None:
    assert dhcp_packet.payload_of(from_server(b"hello") + bytes(20)) == b"hello"


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, 0x65), (0, 0x44), (3, 255), (3, 10), (6, 0x20), (7, 1), (9, 6), (21, 68), (23, 67), (25, 7), (25, 200)],
)
def test_packets_of_another_kind_carry_nothing(place: int, value: int) -> None:
    packet = bytearray(from_server(b"hello"))
    packet[place] = value
    assert dhcp_packet.payload_of(bytes(packet)) is None


def assert_harmless(found: Reply | None) -> None:
    """Whatever came: None, or something that can be printed and written to a file."""
    if found and found.lease:
        for value in asdict(found.lease).values():
            for text in value if isinstance(value, tuple) else [str(value)]:
                assert text.isprintable()
                assert " " not in text


@settings(deadline=None)
@given(st.binary(max_size=600))
@example(b"\x45" + bytes(27))
def test_any_packet_is_read_without_harm(packet: bytes) -> None:
    payload = dhcp_packet.payload_of(packet)
    assert payload is None or len(payload) <= len(packet)
    assert_harmless(reply(packet))


@settings(deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=128))
def test_any_options_are_read_without_harm(options: bytes, file: bytes) -> None:
    assert_harmless(reply(answer({}, file=file)[:-1] + options))
    assert_harmless(reply(answer(OPTIONS, file=file)[:-1] + options))
    assert_harmless(reply(answer({**OPTIONS, 52: b"\x03"}, file=file)[:-1] + options))


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([1, 3, 6, 12, 15, 51, 52, 66, 67, 119]), st.binary(max_size=60)))
def test_any_values_are_read_without_harm(values: dict[int, bytes]) -> None:
    assert_harmless(reply(answer({**OPTIONS, **values, 53: bytes([ACK])})))


@settings(deadline=None)
@given(st.data())
def test_a_damaged_offer_is_read_without_harm(data: st.DataObject) -> None:
    packet = bytearray(from_server(answer()))
    for _ in range(data.draw(st.integers(1, 4))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    payload = dhcp_packet.payload_of(bytes(packet[: data.draw(st.integers(0, len(packet)))]))
    if payload is not None:
        assert_harmless(reply(payload))
