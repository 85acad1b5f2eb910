"""XML as a person writes it."""

from __future__ import annotations

from xml.etree import ElementTree as ET


def to_xml(root: ET.Element) -> str:
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"
