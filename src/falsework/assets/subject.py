"""The subject of a certificate. Apart from `pki`, so that code in machines can name one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    common_name: str
    organizations: tuple[str, ...] = ()
    unit: str | None = None

    def __str__(self) -> str:
        parts = [f"CN={self.common_name}", *(f"O={name}" for name in self.organizations)]
        return ", ".join([*parts, f"OU={self.unit}"] if self.unit else parts)
