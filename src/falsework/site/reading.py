"""Takes typed values out of a YAML tree, and remembers which keys were asked for: all others are unknown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from falsework.site.problems import Place, Problems
from falsework.site.yaml_source import Mapping, Node, Scalar, Sequence, shortened

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,15})")
_TRUE = {"true", "yes", "on"}
_KINDS = {
    "int": "a number",
    "float": "a number",
    "bool": "a yes/no value",
    "null": "empty",
    "timestamp": "a date",
    "value": "a special sign",
}


@dataclass(frozen=True)
class Read(Generic[T]):
    """One value of a file: absent (no place), good (a value), or bad (a place but no value; its problem is told).

    Rules between values leave out bad ones, so that one mistake gives one problem.
    """

    value: T | None = None
    place: Place | None = None

    @property
    def absent(self) -> bool:
        return self.place is None

    @property
    def bad(self) -> bool:
        return self.place is not None and self.value is None

    def __bool__(self) -> bool:
        return self.value is not None

    def got(self) -> T:
        assert self.value is not None
        return self.value

    def where(self) -> Place:
        assert self.place is not None
        return self.place

    def or_else(self, default: T) -> T:
        return default if self.value is None else self.value


class Fields:
    """One mapping of a file."""

    def __init__(self, node: Mapping, path: str, problems: Problems) -> None:
        self.node = node
        self.path = path
        self.problems = problems
        self.known: list[str] = []

    @property
    def place(self) -> Place:
        return self.node.place

    def shown(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _node(self, key: str) -> Node | None:
        """The value, where null is the same as not written."""
        if key not in self.known:
            self.known.append(str(key))
        node = self.node.entries.get(key)
        return None if isinstance(node, Scalar) and node.is_null else node

    def has(self, key: str) -> bool:
        return self._node(key) is not None

    def key_place(self, key: str) -> Place:
        return self.node.keys[key]

    def require(self, key: str, right: str) -> None:
        if not self.has(key):
            place = self.node.keys.get(key, self.place)
            self.problems.error(place, f"{self.shown(key)} is missing", right)

    def _scalar(self, key: str, wanted: str) -> Read[Scalar]:
        node = self._node(key)
        if node is None:
            return Read()
        if not isinstance(node, Scalar):
            self.problems.error(
                node.place, f"{self.shown(key)} is {_kind(node)}, not {wanted}", f"write {wanted} there"
            )
            return Read(None, node.place)
        return Read(node, node.place)

    def text(self, key: str) -> Read[str]:
        """Text proper: what YAML takes for a number or a yes needs quotes, as it does in OpenShift."""
        scalar = self._scalar(key, "text")
        if scalar and scalar.got().kind != "str":
            self.problems.error(
                scalar.where(), f"{self.shown(key)} is {_kind(scalar.got())}, not text", "put it in quotes"
            )
            return Read(None, scalar.place)
        return Read(scalar.got().text, scalar.place) if scalar else Read(None, scalar.place)

    def word(self, key: str, wanted: str) -> Read[str]:
        """Text whose form is checked later; what YAML takes it for does not matter (MAC addresses!)."""
        scalar = self._scalar(key, wanted)
        return Read(scalar.got().text, scalar.place) if scalar else Read(None, scalar.place)

    def integer(self, key: str, minimum: int, maximum: int) -> Read[int]:
        scalar = self._scalar(key, "a whole number")
        if not scalar:
            return Read(None, scalar.place)
        right = f"write a whole number from {minimum} to {maximum}"
        text = scalar.got().text
        if scalar.got().kind != "int" or not _INTEGER.fullmatch(text):
            what = f"{self.shown(key)} is {shortened(text)!r}, not a whole number"
            self.problems.error(scalar.where(), what, right)
            return Read(None, scalar.place)
        if not minimum <= int(text) <= maximum:
            self.problems.error(scalar.where(), f"{self.shown(key)} is {text}", right)
            return Read(None, scalar.place)
        return Read(int(text), scalar.place)

    def boolean(self, key: str) -> Read[bool]:
        scalar = self._scalar(key, "true or false")
        if not scalar:
            return Read(None, scalar.place)
        if scalar.got().kind != "bool":
            what = f"{self.shown(key)} is {shortened(scalar.got().text)!r}"
            self.problems.error(scalar.where(), what, "write true or false")
            return Read(None, scalar.place)
        return Read(scalar.got().text.lower() in _TRUE, scalar.place)

    def choice(self, key: str, values: Iterable[str]) -> Read[str]:
        word = self.word(key, "one word")
        allowed = list(values)
        if word and word.got() not in allowed:
            what = f"{self.shown(key)} is {shortened(word.got())!r}"
            self.problems.error(word.where(), what, f"write {one_of(allowed)}")
            return Read(None, word.place)
        return word

    def member(self, key: str, kind: type[E]) -> Read[E]:
        word = self.choice(key, kind)
        return Read(kind(word.got()) if word else None, word.place)

    def fields(self, key: str) -> Fields | None:
        node = self._node(key)
        if node is None:
            return None
        return fields_of(node, self.shown(key), self.problems)

    def items(self, key: str) -> Read[list[Node]]:
        node = self._node(key)
        if node is None:
            return Read()
        if not isinstance(node, Sequence):
            what = f"{self.shown(key)} is {_kind(node)}, not a list"
            self.problems.error(node.place, what, "write a list: each entry on a line of its own after '- '")
            return Read(None, node.place)
        return Read(node.items, node.place)

    def words(self, key: str, wanted: str) -> Read[list[Read[str]]]:
        """A list of scalars."""
        items = self.items(key)
        if not items:
            return Read(None, items.place)
        words: list[Read[str]] = []
        for index, node in enumerate(items.got()):
            if isinstance(node, Scalar) and not node.is_null:
                words.append(Read(node.text, node.place))
            else:
                what = f"{self.shown(key)}[{index}] is {_kind(node)}, not {wanted}"
                self.problems.error(node.place, what, f"write {wanted} there")
                words.append(Read(None, node.place))
        return Read(words, items.place)

    def plain(self, key: str) -> Any:
        """The value as Python has it, for settings that are only passed on."""
        node = self._node(key)
        return None if node is None else plain(node)

    def refuse(self, key: str, right: str) -> None:
        """A key OpenShift knows but that has no place here."""
        if self.has(key):
            self.problems.error(self.key_place(key), f"{self.shown(key)} cannot be used here", right)

    def refuse_unknown(self, elsewhere: dict[str, str] | None = None) -> None:
        """To be called last. `elsewhere`: keys of another file, by file."""
        for key, place in self.node.keys.items():
            if key in self.known:
                continue
            what = f"the key {shortened(self.shown(key))!r} is unknown"
            if elsewhere and key in elsewhere:
                right = f"it belongs into {elsewhere[key]}"
            elif near := nearest(key, self.known):
                right = f"did you mean {near!r}?"
            else:
                right = f"known here: {', '.join(sorted(self.known))}"
            self.problems.error(place, what, right)


def fields_of(node: Node, path: str, problems: Problems) -> Fields | None:
    if isinstance(node, Mapping):
        return Fields(node, path, problems)
    problems.error(node.place, f"{path or 'the file'} is {_kind(node)}, not keys with values", "write KEY: VALUE lines")
    return None


def plain(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.entries.items()}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    if node.kind == "null":
        return None
    if node.kind == "bool":
        return node.text.lower() in _TRUE
    if node.kind == "int" and _INTEGER.fullmatch(node.text):
        return int(node.text)
    return node.text


def nearest(word: str, known: Iterable[str]) -> str | None:
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def one_of(values: Iterable[str]) -> str:
    *rest, last = values
    return f"{', '.join(rest)} or {last}" if rest else last


def _kind(node: Node) -> str:
    if isinstance(node, Mapping):
        return "a group of keys"
    if isinstance(node, Sequence):
        return "a list"
    return _KINDS.get(node.kind, "text")
