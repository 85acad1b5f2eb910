"""The bootstrap's member goes, and nobody notices: it hands leadership over before it is removed."""

from __future__ import annotations

from falsework.etcd.gateway import EtcdRefusal, Gateway
from falsework.etcd.members import Member, View
from falsework.operators.etcd.scaling import Tell


class BootstrapRemoval:
    """Whether it may be removed is decided before: see `teardown`."""

    def __init__(self, gateway: Gateway, tell: Tell) -> None:
        self._gateway = gateway
        self._tell = tell
        self._begun = False

    def attempt(self, view: View, bootstrap: Member) -> str | None:
        """Why etcd will not have it just now; None if it is gone."""
        if not self._begun:
            self._begun = True
            self._tell("RemoveBootstrapMember", "Removing bootstrap member")
        self._hand_over(view, bootstrap)
        try:
            self._gateway.remove(bootstrap)
        except EtcdRefusal as error:
            if error.is_not_connected_yet:
                return error.said
            if not error.is_done_already:
                raise
        self._tell("BootstrapMemberRemoved", "Bootstrap member removed")
        return None

    def _hand_over(self, view: View, bootstrap: Member) -> None:
        """Removed as a leader, it would leave the others to an election, and every client waiting for it."""
        target = view.successor_of(bootstrap)
        if target is None or not view.is_healthy(bootstrap) or self._gateway.leader() != bootstrap.id:
            return
        self._gateway.move_leadership(bootstrap, target)
        self._tell("MoveLeader", f"Moved leadership from {bootstrap.name} to {target.name}")
