"""Which members to remove, promote and add next: a pure function of one look at the cluster and at the masters.

Quorum comes first. Nothing is done that would leave the cluster without the slack it had; nothing is added or
promoted while a voter is unwell; and only what the operator can be sure of is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from falsework.etcd.members import Member, View, spare, survives
from falsework.etcd.settings import BOOTSTRAP_MEMBER, peer_url


@dataclass(frozen=True)
class Masters:
    """What the cluster's API says."""

    addresses: Mapping[str, str]
    """Node → its address."""
    waiting: Collection[str] = ()
    """Nodes whose etcd container runs, and waits to be let in."""
    destroyed: Collection[str] = ()
    """Nodes that say their member's data is gone."""

    def owner_of(self, member: Member) -> str | None:
        return next((name for name, address in self.addresses.items() if peer_url(address) in member.peer_urls), None)


@dataclass(frozen=True)
class Remove:
    member: Member
    why: str


@dataclass(frozen=True)
class Promote:
    member: Member


@dataclass(frozen=True)
class Add:
    name: str
    peer_url: str


Step = Remove | Promote | Add


@dataclass(frozen=True)
class Plan:
    steps: tuple[Step, ...]
    """To be taken one after the other; after a removal or a promotion, look again first."""
    waits: str = ""
    """Why less is done than there is to do."""


def plan(view: View, masters: Masters, starting: Collection[int] = ()) -> Plan:
    """`starting` are members that were added so short a time ago that they may be starting this moment: they count how
    many members there are, so nobody is added meanwhile."""
    if stale := _stale(view, masters):
        allowed = [step for step in stale if may_remove(view, step.member)]
        if allowed:
            return Plan((allowed[0],))
        names = ", ".join(f"{step.member.title}: {step.why}" for step in stale)
        return Plan((), f"quorum would not survive the removal of {names}")
    if sick := view.unhealthy(view.voters):
        return Plan((), f"not all voters are healthy: {_reasons(view, sick)}")
    promotions = tuple(
        Promote(member) for member in view.learners if view.is_healthy(member) and may_promote(view, member)
    )
    missing = [
        Add(name, peer_url(masters.addresses[name]))
        for name in sorted(masters.waiting)
        if name in masters.addresses and view.reached_by(peer_url(masters.addresses[name])) is None
    ]
    if missing and (begun := [member for member in view.members if member.id in starting]):
        return Plan(promotions, f"{_titles(begun)} must have started before another is added")
    return Plan((*missing, *promotions))


def may_remove(view: View, member: Member) -> bool:
    """Whether the cluster keeps its slack without it. A learner has no vote to lose."""
    if member.is_learner:
        return True
    others = [other for other in view.voters if other != member]
    healthy = len(others) - len(view.unhealthy(others))
    return bool(others) and survives(view.spare, spare(len(others), healthy))


def may_promote(view: View, member: Member) -> bool:
    voters = (*view.voters, member)
    return survives(view.spare, spare(len(voters), len(voters) - len(view.unhealthy(voters))))


def may_restart_one(view: View, needed: int = 3) -> str | None:
    """Why no healthy member may be stopped for a while; None if one may. What quorumSafe is in OpenShift. A control
    plane that is to have fewer than three members never has one to spare: there it is enough that all are well."""
    voters = view.voters
    healthy = len(voters) - len(view.unhealthy(voters))
    if healthy < needed:
        return f"{healthy} of {len(voters)} etcd members are healthy, {needed} must be"
    if needed >= 3 and view.spare < 1:
        return f"etcd would lose its quorum with one more of {len(voters)} members ({healthy} are healthy)"
    return None


def _stale(view: View, masters: Masters) -> list[Remove]:
    """Learners before voters: that costs nothing."""
    found = []
    for member in sorted(view.members, key=lambda each: not each.is_learner):
        owner = masters.owner_of(member)
        if member.name == BOOTSTRAP_MEMBER:
            continue
        if owner is None and member.name in masters.addresses:
            found.append(Remove(member, f"node {member.name} has another address now"))
        elif owner is None and (member.is_learner or not member.is_started):
            found.append(Remove(member, "no master has its address"))
        elif owner in masters.destroyed and member.is_started:
            found.append(Remove(member, "its data is gone"))
    return found


def _reasons(view: View, members: Collection[Member]) -> str:
    return ", ".join(f"{member.title} ({view.faults[member.id]})" for member in members)


def _titles(members: Collection[Member]) -> str:
    return ", ".join(member.title for member in members)
