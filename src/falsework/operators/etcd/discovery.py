"""What a member on a master does before it is etcd: it waits until the cluster lists it and it is its turn, and writes
the configuration etcd is started with. While it waits, the operator sees that there is somebody to add. `decision` says
what it does when.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.etcd import settings
from falsework.etcd.gateway import EtcdRefusal, EtcdUnreachable, Gateway
from falsework.etcd.wal import identity
from falsework.files import sync_folder, write_file
from falsework.operators.etcd.decision import Action, Decision, Listing, decide
from falsework.operators.etcd.member_config import MemberConfig
from falsework.operators.etcd.turn import Turn

Say = Callable[[str], None]

_PAUSE = 0.1
_LONELY = 5.0
"""Seconds for which nobody may answer before a member that has data starts all the same."""
_SETTLED = 0.3
"""Seconds the list must have had the same members: the operator adds those who wait together, one by one."""


@dataclass(frozen=True)
class Discovery:
    config: MemberConfig
    gateway: Gateway
    target: Path
    say: Say
    clock: Callable[[], float] = time.monotonic

    def run(self) -> Action:
        """Back when etcd can be started: to JOIN, or to START with the data it has."""
        data, url = Path(self.config.data), settings.peer_url(self.config.address)
        turn = Turn(url, self.say, self.clock)
        began = self.clock()
        seen: frozenset[int] = frozenset()
        since, told = began, ""
        while True:
            listing = self._listing()
            if listing is not None and listing.ids != seen:
                seen, since = listing.ids, self.clock()
            decision = decide(self.config.name, url, listing, identity(data), patient=self.clock() < began + _LONELY)
            if told != decision.reason:
                told = decision.reason
                self.say(f"{decision.action.value}: {decision.reason}")
            if decision.action is Action.GIVE_UP:
                raise FalseworkError(decision.reason, fix="the etcd operator removes it when quorum allows")
            if decision.action is Action.START or (
                decision.action is Action.JOIN
                and listing is not None
                and self.clock() >= since + _SETTLED
                and turn.has_come(listing.members)
            ):
                self._prepare(decision, data)
                return decision.action
            time.sleep(_PAUSE)

    def _listing(self) -> Listing | None:
        try:
            return Listing(*self.gateway.members_and_cluster())
        except (EtcdUnreachable, EtcdRefusal):
            return None

    def _prepare(self, decision: Decision, data: Path) -> None:
        if decision.action is Action.JOIN and (archived := archive(data)):
            self.say(f"what was in {data / 'member'} is now {archived}")
        write_file(self.target, self.config.to_json(decision.initial_cluster), 0o600)


def archive(data: Path) -> Path | None:
    """An earlier life's data, out of the way but not gone."""
    member = data / "member"
    if not member.exists():
        return None
    archived = data / f"member-removed-archive-{datetime.now(UTC).strftime('%Y-%m-%dT%H%M%S.%fZ')}"
    member.rename(archived)
    sync_folder(data)
    return archived
