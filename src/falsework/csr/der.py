"""A reader of DER that takes nothing on trust: what is not exactly as the standard writes it is refused.

Lengths are definite, as short as they can be, and end where their parent ends. Nothing is skipped unseen, and
nothing here calls itself, so no input can make it slow or deep.
"""

from __future__ import annotations

from dataclasses import dataclass

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, OID = 0x01, 0x02, 0x03, 0x04, 0x06
UTF8_STRING, PRINTABLE_STRING = 0x0C, 0x13
SEQUENCE, SET = 0x30, 0x31


class DerError(ValueError):
    """Its text says what was not understood. It never holds what was read."""


@dataclass
class Reader:
    """What is left of a value's content, from front to back."""

    content: memoryview

    @classmethod
    def of(cls, content: bytes) -> Reader:
        return cls(memoryview(content))

    @property
    def is_at_end(self) -> bool:
        return not self.content

    def next_tag(self) -> int:
        if not self.content:
            raise DerError("it ends too early")
        return self.content[0]

    def take(self, tag: int) -> bytes:
        """The content of the next value, which must have this tag."""
        return bytes(self._take(tag))

    def enter(self, tag: int) -> Reader:
        """The inside of the next value."""
        return Reader(self._take(tag))

    def end(self) -> None:
        if self.content:
            raise DerError("something follows where nothing should")

    def _take(self, tag: int) -> memoryview:
        if self.next_tag() != tag:
            raise DerError(f"a value is of another kind (0x{self.content[0]:02x}) than expected (0x{tag:02x})")
        start, length = self._length()
        if start + length > len(self.content):
            raise DerError("a value is longer than what holds it")
        value, self.content = self.content[start : start + length], self.content[start + length :]
        return value

    def _length(self) -> tuple[int, int]:
        """Where the value starts, and its length."""
        if len(self.content) < 2:
            raise DerError("it ends too early")
        first = self.content[1]
        if first < 0x80:
            return 2, first
        size = first & 0x7F
        if not 1 <= size <= 3 or len(self.content) < 2 + size:
            raise DerError("a length cannot be read")
        length = int.from_bytes(self.content[2 : 2 + size], "big")
        if length < 0x80 or length < 1 << 8 * (size - 1):
            raise DerError("a length is written longer than it need be")
        return 2 + size, length
