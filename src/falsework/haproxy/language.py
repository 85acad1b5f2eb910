"""Its configuration, as text."""

from __future__ import annotations


def section(head: str, *settings: str) -> str:
    return "\n".join([head, *(f"    {setting}" for setting in settings)]) + "\n"
