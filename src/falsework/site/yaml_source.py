"""Reads a YAML file into a tree in which every value knows its line and column.

The tree is built from the parser's events with a stack of our own, because the usual composer recurses,
keeps the last of two equal keys, and lets a few hundred bytes of aliases grow into gigabytes. Scalars stay
text: only the field that is read knows whether `52:54:00:12:34:56` is a MAC address or, as YAML 1.1 has it,
a number to the base of 60.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from falsework.site.problems import Place, Problems

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_ALIASES = 1_000
MAX_VALUES = 200_000
"""After all aliases are followed. A site with a thousand machines has some twenty thousand."""

# The C parser is ten times as fast; both give the same events.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_IN_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff")
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_YAML_TYPE = "tag:yaml.org,2002:"
_TAGS = {_YAML_TYPE + kind: kind for kind in ("str", "int", "float", "bool", "null", "map", "seq")}
_resolve: Any = yaml.resolver.Resolver().resolve


@dataclass(slots=True)
class Scalar:
    place: Place
    text: str
    kind: str
    """What YAML 1.1 takes it for: str, int, float, bool, null or another of its types."""
    size: int = 1

    @property
    def is_null(self) -> bool:
        return self.kind == "null"


@dataclass(slots=True)
class Sequence:
    place: Place
    items: list[Node] = field(default_factory=list)
    size: int = 1


@dataclass(slots=True)
class Mapping:
    place: Place
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)
    size: int = 1


Node = Scalar | Sequence | Mapping


class _RefusedError(Exception):
    """The file cannot be read on from here."""

    def __init__(self, place: Place, what: str, right: str) -> None:
        super().__init__(what)
        self.problem = (place, what, right)


def read_yaml(path: Path, problems: Problems, shown_as: str | None = None) -> Node | None:
    """The file's only document (no keys when the file is empty), or None when it cannot be read: a problem says why."""
    file = shown_as or path.name
    try:
        return _read(path, file, problems)
    except _RefusedError as refused:
        problems.error(*refused.problem)
    except OSError as error:
        problems.error(Place(file), f"{path} cannot be read: {error.strerror}", "it must be a readable file")
    return None


def parse_yaml(content: bytes, file: str, problems: Problems) -> Node | None:
    """The same for content already at hand."""
    try:
        return _parse(content, file, problems)
    except _RefusedError as refused:
        problems.error(*refused.problem)
    return None


def _read(path: Path, file: str, problems: Problems) -> Node | None:
    if not path.is_file():
        raise _RefusedError(Place(file), f"{path} is not a regular file", "put a YAML file there")
    with path.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    return _parse(content, file, problems)


def _parse(content: bytes, file: str, problems: Problems) -> Node | None:
    if len(content) > MAX_BYTES:
        raise _RefusedError(
            Place(file),
            f"the file is larger than {MAX_BYTES // 1_000_000} MB",
            "a site of a thousand machines fits into a fifth of that; is this the right file?",
        )
    text = _decoded(content, file)
    if unfit := _NOT_IN_YAML.search(text):
        raise _RefusedError(
            _place_of_offset(text, unfit.start(), file),
            f"the character U+{ord(unfit.group()):04X} is not allowed in YAML",
            "take it out",
        )
    try:
        return _Builder(file, problems).build(_events(text))
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, file) from None


def _events(text: str) -> Iterator[yaml.Event]:
    return yaml.parse(text, Loader=_Loader)  # type: ignore[no-any-return]


def _decoded(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        good = content[: error.start].decode("utf-8")
        raise _RefusedError(
            _place_of_offset(good, len(good), file),
            f"the byte 0x{content[error.start]:02x} is not UTF-8",
            "save the file in UTF-8",
        ) from None


def _place_of_offset(text: str, offset: int, file: str) -> Place:
    *lines, last = _LINE_END.split(text[:offset])
    return Place(file, len(lines) + 1, len(last) + 1)


def _syntax_error(error: yaml.YAMLError, text: str, file: str) -> _RefusedError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return _RefusedError(Place(file, 1, 1), "the file is not YAML", "see the examples in docs/site-file.md")
    place = Place(file, mark.line + 1, mark.column + 1)
    lines = _LINE_END.split(text)
    line = lines[mark.line] if mark.line < len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent:
        place = Place(file, mark.line + 1, indent.index("\t") + 1)
        return _RefusedError(place, "a tab is used to indent", "YAML wants spaces there")
    said = [getattr(error, part, None) for part in ("context", "problem")]
    reason = " ".join(" ".join(str(part) for part in said if part).split())
    return _RefusedError(
        place, f"this is not YAML: {reason or 'it cannot be read'}", "look at this line and the one before"
    )


class _Builder:
    """Turns events into a tree, with everything counted that could grow."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self.open: list[Sequence | Mapping] = []
        self.anchors: dict[str, Node] = {}
        self.pending_keys: list[tuple[str, Place] | None] = []
        """For every open mapping the key whose value comes next."""
        self.aliases = 0
        self.documents = 0
        self.root: Node | None = None

    def build(self, events: Iterator[yaml.Event]) -> Node | None:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._count_document(event)
            elif isinstance(event, yaml.ScalarEvent):
                self._take(self._scalar(event), event)
            elif isinstance(event, yaml.AliasEvent):
                self._take(self._aliased(event), event)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self._descend(event)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                self._ascend()
        if self.root is None or (isinstance(self.root, Scalar) and self.root.is_null):
            return Mapping(Place(self.file, 1, 1))
        return self.root

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1) if mark else Place(self.file)

    def _count_document(self, event: yaml.Event) -> None:
        self.documents += 1
        if self.documents > 1:
            raise _RefusedError(
                self._place(event),
                "a second document starts here",
                "keep one document in the file, without another ---",
            )

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        place = self._place(event)
        if event.tag is None:
            kind = _resolve(yaml.ScalarNode, event.value, event.implicit).removeprefix(_YAML_TYPE)
        else:
            self._check_tag(event.tag, place)
            kind = _TAGS.get(event.tag, "str")
        scalar = Scalar(place, event.value, kind)
        if event.anchor:
            self.anchors[event.anchor] = scalar
        return scalar

    def _check_tag(self, tag: str | None, place: Place) -> None:
        if tag not in (None, "!") and tag not in _TAGS:
            shown = shortened(str(tag))
            self.problems.error(place, f"the tag {shown} is unknown here", "write the value without a tag")

    def _aliased(self, event: yaml.AliasEvent) -> Node:
        place = self._place(event)
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise _RefusedError(place, f"there are more than {MAX_ALIASES} aliases", "write the values out")
        name = event.anchor or ""
        target = self.anchors.get(name)
        if target is None:
            raise _RefusedError(
                place,
                f"the alias *{shortened(name)} has no anchor",
                "put &NAME before the value it should repeat",
            )
        if any(target is node for node in self.open):
            raise _RefusedError(
                place, f"the alias *{shortened(name)} stands inside its own anchor", "write the value out"
            )
        return target

    def _descend(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        place = self._place(event)
        if len(self.open) >= MAX_DEPTH:
            raise _RefusedError(place, f"the values are nested more than {MAX_DEPTH} deep", "no key here needs that")
        self._check_tag(event.tag, place)
        node: Mapping | Sequence = Mapping(place) if isinstance(event, yaml.MappingStartEvent) else Sequence(place)
        if self.open and isinstance(self.open[-1], Mapping) and self.pending_keys[-1] is None:
            raise _RefusedError(place, "a key must be a plain word", "write the key as text")
        if event.anchor:
            self.anchors[event.anchor] = node
        self.open.append(node)
        self.pending_keys.append(None)

    def _ascend(self) -> None:
        node = self.open.pop()
        self.pending_keys.pop()
        self._take(node, None)

    def _take(self, node: Node, event: yaml.Event | None) -> None:
        """Put a finished value where it belongs: as a key, a value, an item or the document itself."""
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.size += node.size
        if parent.size > MAX_VALUES:
            raise _RefusedError(
                self._place(event) if event else node.place,
                f"the file holds more than {MAX_VALUES} values once its aliases are followed",
                "write out what is meant, without aliases of aliases",
            )
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif self.pending_keys[-1] is None:
            self.pending_keys[-1] = self._key(node, event)
        else:
            key, key_place = self.pending_keys[-1]
            self.pending_keys[-1] = None
            self._enter(parent, key, key_place, node)

    def _key(self, node: Node, event: yaml.Event | None) -> tuple[str, Place]:
        place = self._place(event) if event else node.place
        if not isinstance(node, Scalar):
            raise _RefusedError(place, "a key must be a plain word", "write the key as text")
        if node.kind == "merge":
            raise _RefusedError(place, "the merge key << is not supported here", "write the merged keys out")
        return node.text, place

    def _enter(self, parent: Mapping, key: str, key_place: Place, node: Node) -> None:
        if key in parent.entries:
            first = parent.keys[key]
            self.problems.error(
                key_place, f"the key {shortened(key)!r} is there twice (first in line {first.line})", "keep one of them"
            )
            return
        parent.entries[key] = node
        parent.keys[key] = key_place


def shortened(text: str, length: int = 60) -> str:
    """Text from a file, short enough for a message and on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
