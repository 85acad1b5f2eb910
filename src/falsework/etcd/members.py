"""Members of a cluster, as etcd lists them, and how many of them may be lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Member:
    id: int
    name: str
    """Empty until it has started for the first time."""
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...] = ()
    is_learner: bool = False

    @property
    def hex(self) -> str:
        return f"{self.id:x}"

    @property
    def is_started(self) -> bool:
        return bool(self.name)

    @property
    def title(self) -> str:
        return self.name or f"{self.hex} ({', '.join(self.peer_urls)})"


@dataclass(frozen=True)
class View:
    """One look at the whole cluster."""

    members: tuple[Member, ...]
    faults: Mapping[int, str] = field(default_factory=dict)
    """Member → why it is not healthy."""

    @property
    def voters(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if not member.is_learner)

    @property
    def learners(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.is_learner)

    def is_healthy(self, member: Member) -> bool:
        return member.id not in self.faults

    def unhealthy(self, members: Iterable[Member]) -> list[Member]:
        return [member for member in members if not self.is_healthy(member)]

    def named(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)

    def reached_by(self, peer_url: str) -> Member | None:
        return next((member for member in self.members if peer_url in member.peer_urls), None)

    def successor_of(self, leader: Member) -> Member | None:
        """Whom it can hand leadership to."""
        return next((member for member in self.voters if member.id != leader.id and self.is_healthy(member)), None)

    @property
    def spare(self) -> int:
        voters = self.voters
        return spare(len(voters), len(voters) - len(self.unhealthy(voters)))


def quorum(voters: int) -> int:
    return voters // 2 + 1


def spare(voters: int, healthy: int) -> int:
    """How many healthy voters may be lost while the cluster goes on; below zero, it does not."""
    return healthy - quorum(voters)


def survives(before: int, after: int) -> bool:
    """Whether a step may be taken that changes the spare voters so: the cluster goes on afterwards, even when one
    more is lost meanwhile, unless it could not bear that before either."""
    return after >= min(1, max(0, before))
