"""Whose data a folder holds: the first records of etcd's write-ahead log name the member and the cluster.

The log is read, never written. Its frames are a length, then a protobuf record {1: type, 2: checksum, 3: data}; the
record of type 1 holds {1: member id, 2: cluster id}.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_METADATA = 1
_LENGTH_MASK = (1 << 56) - 1
_FRAMES_LOOKED_AT = 4
_LONGEST_FRAME = 1 << 16
_VARINT, _BYTES = 0, 2


@dataclass(frozen=True)
class Identity:
    member: int
    cluster: int


def identity(data: Path) -> Identity | None:
    """None if there is no log, or none that etcd has finished creating."""
    logs = sorted((data / "member" / "wal").glob("*.wal"))
    if not logs:
        return None
    try:
        with logs[0].open("rb") as file:
            return _first_metadata(file)
    except (OSError, ValueError, IndexError):
        return None


def _first_metadata(file: BinaryIO) -> Identity | None:
    for _ in range(_FRAMES_LOOKED_AT):
        head = int.from_bytes(file.read(8), "little")
        length = head & _LENGTH_MASK
        # The highest bit says that the record is padded, the three lowest of that byte by how much.
        padding = (head >> 56) & 7 if head >> 63 else 0
        if not 0 < length <= _LONGEST_FRAME:
            return None
        record = _fields(file.read(length))
        file.read(padding)
        if record.get(1) == _METADATA:
            data = record.get(3)
            ids = _fields(data if isinstance(data, bytes) else b"")
            member, cluster = ids.get(1), ids.get(2)
            return Identity(member, cluster) if isinstance(member, int) and isinstance(cluster, int) else None
    return None


def _fields(message: bytes) -> dict[int, int | bytes]:
    """Of a protobuf message that has only numbers and bytes. ValueError or IndexError if it is not one."""
    found: dict[int, int | bytes] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at)
        if tag & 7 == _VARINT:
            found[tag >> 3] = value
        elif tag & 7 == _BYTES and at + value <= len(message):
            found[tag >> 3] = message[at : at + value]
            at += value
        else:
            raise ValueError("not a record of the log")
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
