"""What a stage works with. Everything in it is made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from falsework.errors import FalseworkError
from falsework.host.facts import Host
from falsework.kube.connection import Patience
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines.retirement import standing
from falsework.progress import Progress, Task
from falsework.stages.conditions import Condition, Seen, wait_for
from falsework.stages.events import EventLog, Kind

if TYPE_CHECKING:
    from falsework.kube.cluster import Cluster
    from falsework.release.cache import Cache
    from falsework.release.inventory import Release
    from falsework.site.model import Site

_API_PATIENCE = Patience(connect=2, answer=10)


class Context:
    """`events` is None where nothing may be touched: then there is nowhere to note anything."""

    def __init__(
        self,
        lab: Lab,
        read_site: Callable[[], Site],
        progress: Progress,
        events: EventLog | None = None,
        host: Host | None = None,
    ) -> None:
        self.lab = lab
        self.progress = progress
        self.events = events
        self.host = host or Host()
        self.journal = Journal(lab.journal)
        self.stage = ""
        """The stage under way."""
        self.task: Task | None = None
        """Its line on the terminal."""
        self._read_site = read_site

    @cached_property
    def site(self) -> Site:
        return self._read_site()

    @cached_property
    def cache(self) -> Cache:
        from falsework.release.cache import Cache, default_root

        return Cache(default_root(), self.say)

    def find_release(self) -> Release | None:
        """The release, if all of it is on this host."""
        from falsework.release import inventory
        from falsework.release.payload import load_payload

        return inventory.find(self.cache, load_payload())

    @cached_property
    def release(self) -> Release:
        """For the stages after `release`."""
        found = self.find_release()
        if found is None:
            raise FalseworkError(
                f"the release in {self.cache.root} is not complete any more",
                cause="something removed or changed files of it",
                fix="run `falsework up` again: it looks for what is missing",
            )
        return found

    @property
    def standing_site(self) -> Site:
        """The site as the lab has it now: without its bootstrap, once that is retired."""
        return standing(self.site, self.lab)

    @cached_property
    def cluster(self) -> Cluster:
        """For the stages after the temporary control plane."""
        from falsework.kube.cluster import Cluster
        from falsework.machines.lab_api import lab_client
        from falsework.machines.view import View

        return Cluster(lab_client(View(self.site, self.lab), _API_PATIENCE))

    def close(self) -> None:
        """Let go of what was made when it was asked for."""
        if "cluster" in self.__dict__:
            self.cluster.close()
            del self.cluster

    def note(self, kind: Kind, **fields: Any) -> None:
        if self.events:
            self.events.add(kind, **fields)

    def say(self, sentence: str) -> None:
        """To the person and to the event stream."""
        self.progress.say(sentence)
        self.note(Kind.SENTENCE, stage=self.stage, text=sentence)

    def doing(self, what: str) -> None:
        """What the stage is at, in a few words, behind its name on the terminal."""
        if self.task:
            self.task.doing = what

    def wait_for(self, conditions: Sequence[Condition], *, together: bool = False) -> None:
        """Wait until each has held, or all do together; every change goes to the event stream and the terminal."""
        wait_for(conditions, self._tell, together=together)

    def _tell(self, condition: Condition, seen: Seen, seconds: float) -> None:
        self.doing(f"{condition.waits_for}: {seen.state}")
        self.note(
            Kind.CONDITION,
            stage=self.stage,
            name=condition.name,
            waitsFor=condition.waits_for,
            holds=seen.holds,
            state=seen.state,
            error=seen.error,
            evidence=seen.evidence,
            forSeconds=round(seconds, 3),
        )
