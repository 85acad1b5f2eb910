"""What all members have in common: the bootstrap's, which is told by flags, and the masters', told by a file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

CLIENT_PORT = 2379
PEER_PORT = 2380
METRICS_PORT = 9978
"""On the loopback interface alone, without a certificate: for the kubelet's probes."""
BOOTSTRAP_MEMBER = "etcd-bootstrap"
QUOTA_BYTES = 8 << 30


class Speed(StrEnum):
    """The words of the Etcd object's spec.controlPlaneHardwareSpeed."""

    UNSET = ""
    STANDARD = "Standard"
    SLOWER = "Slower"


@dataclass(frozen=True)
class Timing:
    """Milliseconds. One that is less patient than the leader's heartbeats allow calls elections."""

    heartbeat: int
    election: int


_TIMINGS = {Speed.UNSET: Timing(100, 1000), Speed.STANDARD: Timing(100, 1000), Speed.SLOWER: Timing(500, 2500)}


FIRST_MEMBER = Timing(100, 1000)
"""The bootstrap's: alone, it has to wait out its own patience before it leads, and everybody waits for that. Heartbeats
of the most patient are twice as frequent as it needs."""


def timing_of(speed: str) -> Timing:
    return _TIMINGS[Speed(speed)]


def client_url(address: str) -> str:
    return _url(address, CLIENT_PORT)


def peer_url(address: str) -> str:
    return _url(address, PEER_PORT)


def _url(address: str, port: int) -> str:
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"
