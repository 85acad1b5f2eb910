"""What all checks start from: the site, the lab it has here, and the ways to ask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from falsework.checks.answers import Asker
from falsework.checks.verify.commands import Commands
from falsework.checks.verify.snapshot import Snapshot
from falsework.lab.folder import NETWORK, Lab
from falsework.machines.nspawn import Nspawn
from falsework.machines.retirement import is_retired, standing
from falsework.site.model import Machine, Site


@dataclass(frozen=True)
class Facts:
    site: Site
    lab: Lab
    provider: Nspawn
    commands: Commands
    cluster: Snapshot

    @cached_property
    def bootstrap(self) -> Machine | None:
        """None once it has made way."""
        return None if is_retired(self.lab) else self.site.bootstrap

    @cached_property
    def standing(self) -> Site:
        return standing(self.site, self.lab)

    @property
    def master(self) -> Machine:
        """The one that is asked where any would do."""
        return self.site.masters[0]

    @cached_property
    def asker(self) -> Asker:
        """From the lab's network, where a workstation would be."""
        return Asker(self.lab.netns_path(NETWORK))

    def asker_on(self, machine: Machine) -> Asker:
        return Asker(self.lab.netns_path(machine.name))
