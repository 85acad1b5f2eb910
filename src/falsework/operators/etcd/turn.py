"""Who was added together starts one after the other.

One that joins asks all listed members for their version, each in turn, before it answers anybody itself; one that is
starting takes that question and leaves it unanswered for seconds. Started together, all would wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from falsework.etcd.members import Member

_PATIENCE = 6.0
"""Seconds in which a member must have started when it is its turn; then the next goes on all the same."""


class Turn:
    """One member's place in the line, which all who wait see alike: by peer URL."""

    def __init__(self, peer_url: str, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._peer_url = peer_url
        self._say = say
        self._clock = clock
        self._awaited: int | None = None
        self._since = 0.0
        self._given_up: set[int] = set()

    def has_come(self, members: Iterable[Member]) -> bool:
        for member in self._before(members):
            if self._awaited != member.id:
                self._awaited, self._since = member.id, self._clock()
                self._say(f"wait: {member.title} starts first")
            if self._clock() < self._since + _PATIENCE:
                return False
            self._given_up.add(member.id)
            self._say(f"go on: {member.title} has not started in {_PATIENCE:.0f} s")
        return True

    def _before(self, members: Iterable[Member]) -> list[Member]:
        """Those who have not started and are to do so before this one."""
        unstarted = [member for member in members if not member.is_started and member.id not in self._given_up]
        return sorted(
            (member for member in unstarted if member.peer_urls < (self._peer_url,)), key=lambda each: each.peer_urls
        )
