"""Taking the steps of `membership`: one look, what follows from it, another look, until nothing is left to do now."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from falsework.etcd.gateway import EtcdRefusal, Gateway
from falsework.etcd.members import View
from falsework.etcd.settings import peer_url
from falsework.operators.etcd.membership import Add, Masters, Promote, Remove, Step, plan

Tell = Callable[[str, str], None]
"""An event, which is a line of the log as well: its reason, its message."""

_STARTING = 10.0
"""Seconds in which a member that was added may be starting this moment."""
_GATHERING = 6.0
"""Seconds for which those who wait wait for the other masters: added together, they start together, while one after the
other each would have to have started before the next is added, and to vote for five seconds."""
_LEARNING = 60.0
"""Seconds for which one that was added is asked often whether it can be promoted; if it is down, then not any more."""
_SOON, _LATER = 0.1, 1.0
_MOST_LOOKS = 20


@dataclass(frozen=True)
class Outcome:
    view: View
    waits: str
    """Why less was done than there is to do."""
    pause: float | None
    """Seconds until it is worth looking again; None if there is nothing under way."""


class Scaling:
    def __init__(self, gateway: Gateway, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._tell = tell
        self._clock = clock
        self._started: set[int] | None = None
        self._unstarted_since: dict[int, float] = {}
        self._learns_since: dict[int, float] = {}
        self._waited_since: float | None = None

    def run(self, masters: Masters) -> Outcome:
        for _ in range(_MOST_LOOKS):
            view = self._gateway.look()
            starting = self._note(view)
            gathering = self._gathering(view, masters)
            found = plan(view, replace(masters, waiting=()) if gathering else masters, starting)
            refusals = []
            changed = False
            for step in found.steps:
                refusal = self._take(step)
                if refusal is not None:
                    refusals.append(refusal)
                    continue
                changed = True
                if not isinstance(step, Add):
                    break
            if not changed:
                break
        pause = self._pause(view, bool(gathering or starting or refusals), bool(found.waits))
        return Outcome(view, "; ".join(filter(None, (gathering, found.waits, *refusals))), pause)

    def _take(self, step: Step) -> str | None:
        """Why etcd will not have it just now; None if it is done."""
        try:
            match step:
                case Remove(member, why):
                    self._gateway.remove(member)
                    self._tell("MemberRemove", f"Removed member {member.title}: {why}")
                case Promote(member):
                    self._gateway.promote(member)
                    self._tell("MemberPromote", f"Promoted member {member.title}: it has caught up and votes")
                case Add(name, url):
                    self._gateway.add_learner(url)
                    self._tell("MemberAddAsLearner", f"Adding member {name} ({url}) as a learner")
        except EtcdRefusal as error:
            if error.is_done_already:
                return None
            if error.is_not_in_sync or error.is_not_connected_yet:
                return error.said
            raise
        return None

    def _gathering(self, view: View, masters: Masters) -> str:
        """Whom those who wait still wait for, if anyone."""
        outside = {name for name, address in masters.addresses.items() if view.reached_by(peer_url(address)) is None}
        if not outside & set(masters.waiting):
            self._waited_since = None
            return ""
        now = self._clock()
        if self._waited_since is None:
            self._waited_since = now
        coming = outside - set(masters.waiting)
        if not coming or now >= self._waited_since + _GATHERING:
            return ""
        return f"{', '.join(sorted(coming))} may come in a moment"

    def _note(self, view: View) -> list[int]:
        """Who has started since the last look is told; who may be starting this moment is the answer."""
        started = {member.id for member in view.members if member.is_started}
        if self._started is None:
            # Another operator may have been stopped before it could tell of learners.
            self._started = started - {member.id for member in view.learners}
        for member in view.members:
            if member.id in started - self._started:
                self._tell("MemberStarted", f"Member {member.name} started")
        self._started = started
        now = self._clock()
        unstarted = [member for member in view.members if not member.is_started]
        self._unstarted_since = {each.id: self._unstarted_since.get(each.id, now) for each in unstarted}
        self._learns_since = {each.id: self._learns_since.get(each.id, now) for each in view.learners}
        return [each for each, since in self._unstarted_since.items() if now < since + _STARTING]

    def _pause(self, view: View, begun: bool, held_up: bool) -> float | None:
        """Soon where something is under way; a member that is down is asked less often."""
        now = self._clock()
        learning = any(now < since + _LEARNING for since in self._learns_since.values())
        if begun or learning or any(view.is_healthy(member) for member in view.learners):
            return _SOON
        return _LATER if held_up or view.faults else None
