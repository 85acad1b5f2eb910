"""A DHCP client for an interface that has no address yet."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from socket import inet_aton, inet_ntoa

from falsework.machines.firmware import dhcp_packet
from falsework.machines.firmware.dhcp_packet import ACK, NAK, OFFER, Lease, Reply

_ETH_P_IP = 0x0800
_EVERYBODY = b"\xff" * 6
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 4.0
_REQUESTS = 4


def lease(interface: str, mac: str, say: Callable[[str], None], doing: Callable[[str], None]) -> Lease:
    """Ask until a server gives this machine a lease. The interface is up."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as wire:
        # Below IP, so no address, no route and no filter of the kernel's IP stack is in the way.
        wire.bind((interface, _ETH_P_IP))
        client = _Client(wire, interface, bytes.fromhex(mac.replace(":", "")))
        for attempt, wait in enumerate(_waits(), start=1):
            _tell(interface, mac, attempt, say, doing)
            offer = client.ask(dhcp_packet.discover, (OFFER,), wait)
            if offer is None or offer.lease is None:
                continue
            got = client.take(offer.lease.address, offer.server, say)
            if got is not None:
                return got
    raise AssertionError("the waits never end")


def give_back(mac: str, address: str, server: str) -> None:
    """For a machine that is gone: its lease would keep the address from others until it has run out."""
    packet = dhcp_packet.release(
        os.urandom(4), bytes.fromhex(mac.replace(":", "")), inet_aton(address), inet_aton(server)
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.sendto(packet, (server, dhcp_packet.SERVER_PORT))


class _Client:
    def __init__(self, wire: socket.socket, interface: str, mac: bytes) -> None:
        self._wire = wire
        self._interface = interface
        self._mac = mac
        self._transaction = os.urandom(4)
        self._began = time.monotonic()

    def take(self, address: str, server: bytes, say: Callable[[str], None]) -> Lease | None:
        """Ask for the address a server offered; None when it will not have it, or says no more."""

        def request(transaction: bytes, mac: bytes, seconds: int) -> bytes:
            return dhcp_packet.request(transaction, mac, seconds, inet_aton(address), server)

        for _, wait in zip(range(_REQUESTS), _waits(), strict=False):
            reply = self.ask(request, (ACK, NAK), wait, server)
            if reply is not None and reply.kind == NAK:
                say(f"DHCP: {inet_ntoa(server)} offered {address}, then refused it; asking anew")
                # The back-off of the caller goes on, so that a server that always refuses is not flooded.
                time.sleep(_FIRST_WAIT)
                break
            if reply is not None and reply.lease is not None:
                return reply.lease
        else:
            say(f"DHCP: {inet_ntoa(server)} offered {address}, then said no more; asking anew")
        self._transaction = os.urandom(4)
        return None

    def ask(
        self,
        message: Callable[[bytes, bytes, int], bytes],
        kinds: tuple[int, ...],
        wait: float,
        server: bytes | None = None,
    ) -> Reply | None:
        """Send it once, and wait for an answer of one of these kinds."""
        payload = message(self._transaction, self._mac, int(time.monotonic() - self._began))
        deadline = time.monotonic() + wait
        with _cable_may_be_out():
            self._wire.sendto(dhcp_packet.broadcast(payload), (self._interface, _ETH_P_IP, 0, 0, _EVERYBODY))
        while (left := deadline - time.monotonic()) > 0:
            packet = b""
            self._wire.settimeout(left)
            with _cable_may_be_out(), contextlib.suppress(TimeoutError):
                packet = self._wire.recv(65536)
            answer = dhcp_packet.payload_of(packet)
            reply = answer and dhcp_packet.reply_to(self._transaction, self._mac, answer)
            if reply and reply.kind in kinds and (reply.lease or reply.kind == NAK) and server in (None, reply.server):
                return reply
        return None


@contextlib.contextmanager
def _cable_may_be_out() -> Iterator[None]:
    """A link that is down is no more than a server that does not answer: it may come up."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENETDOWN, errno.ENOBUFS):
            raise


def _waits() -> Iterator[float]:
    """Soon again at first, because a server that is just starting answers soon."""
    wait = _FIRST_WAIT
    while True:
        yield wait
        wait = min(2 * wait, _LONGEST_WAIT)


def _tell(interface: str, mac: str, attempt: int, say: Callable[[str], None], doing: Callable[[str], None]) -> None:
    if attempt == 1:
        say(f"DHCP: asking for an address on {interface} as {mac}")
        doing("DHCP: asking for an address")
        return
    waiting = f"DHCP: nobody gives {mac} an address, asked {attempt - 1} time{'s' if attempt > 2 else ''}"
    doing(waiting)
    # A console to read, not to scroll: the second, fourth, eighth … time.
    if attempt & (attempt - 1) == 0:
        say(waiting)
