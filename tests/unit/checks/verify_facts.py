"""A lab that nobody runs: enough to see which checks there would be."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from falsework.checks.verify.commands import Commands
from falsework.checks.verify.facts import Facts
from falsework.checks.verify.said import Said
from falsework.checks.verify.snapshot import Snapshot
from falsework.kube.client import Client, Object
from falsework.kube.resources import Resource
from falsework.lab.folder import Lab
from falsework.machines import retirement
from falsework.machines.nspawn import Nspawn
from falsework.site.load import default_site


class ToldCommands:
    """Says what it was told to say to a command."""

    def __init__(self) -> None:
        self.answers: dict[str, Said] = {}

    def in_shell(self, script: str, given: bytes = b"") -> Said:
        return self.answers[script]

    def on(self, machine: object, script: str, *, terminal: bool = False) -> Said:
        return self.answers[script]


@dataclass(frozen=True)
class _Listed:
    items: list[Object]


@dataclass
class ToldClient:
    objects: dict[str, list[Object]] = field(default_factory=dict)
    asked: int = 0

    def list(self, resource: Resource, **_: Any) -> _Listed:
        self.asked += 1
        return _Listed(self.objects.get(resource.plural, []))


def facts_of(folder: Path, *, has_bootstrap: bool = False, client: ToldClient | None = None) -> Facts:
    lab = Lab.of(folder / "site", folder)
    lab.root.mkdir(parents=True, exist_ok=True)
    if not has_bootstrap:
        retirement.note(lab)
    commands = cast(Commands, ToldCommands())
    return Facts(default_site(), lab, cast(Nspawn, None), commands, Snapshot(cast(Client, client or ToldClient())))
