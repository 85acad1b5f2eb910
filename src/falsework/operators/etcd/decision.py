"""What a member on a master has to do before it starts: OpenShift's decision table, which keeps one cluster one.

Two things decide: whether the cluster lists this member's address, and whose data the folder holds.

| listed | data | then |
|---|---|---|
| not started yet | none, or an earlier life's | archive what is there, join when it is its turn (see `turn`) |
| started | this cluster's | start |
| started | none, or another cluster's | it must be removed from the cluster first: never start with less than it had |
| no | any | wait: the operator adds it |
| nobody answers | any cluster's | start: it may be its own vote that is missing |
| nobody answers | none | wait |

It never starts as a new cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from falsework.etcd.members import Member
from falsework.etcd.wal import Identity

DESTROYED = "dataDir has been destroyed and must be removed from the cluster"
"""OpenShift's words, which the operator looks for in what the container said last."""


class Action(Enum):
    JOIN = "join"
    START = "start"
    WAIT = "wait"
    GIVE_UP = "give up"


@dataclass(frozen=True)
class Decision:
    action: Action
    reason: str
    initial_cluster: str = ""


@dataclass(frozen=True)
class Listing:
    """What the cluster says."""

    members: tuple[Member, ...]
    cluster: int

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(member.id for member in self.members)


def decide(name: str, peer_url: str, listing: Listing | None, data: Identity | None, *, patient: bool) -> Decision:
    """`listing` is None if nobody answers; `patient` while that may still change."""
    if listing is None:
        if data is not None and not patient:
            return Decision(Action.START, "no member answers, and the data is here", f"{name}={peer_url}")
        return Decision(Action.WAIT, "no member of the cluster answers")
    mine = next((member for member in listing.members if peer_url in member.peer_urls), None)
    has_its_data = data is not None and data.cluster == listing.cluster
    if mine is None:
        kept = " (what is in the data folder will be archived then)" if data is not None else ""
        return Decision(Action.WAIT, f"{peer_url} is not in the member list yet{kept}")
    if not mine.is_started:
        return Decision(Action.JOIN, "added, and not started yet", initial_cluster(name, mine, listing.members))
    if has_its_data:
        return Decision(Action.START, "a member already", f"{name}={peer_url}")
    return Decision(Action.GIVE_UP, f"member {mine.hex} has started before, but its {DESTROYED}")


def initial_cluster(name: str, mine: Member, members: Sequence[Member]) -> str:
    """All members must be there, also those that have no name yet: etcd compares the addresses."""
    return ",".join(
        f"{name if member.id == mine.id else member.name or member.hex}={url}"
        for member in members
        for url in member.peer_urls
    )
