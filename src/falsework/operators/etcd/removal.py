"""The bootstrap's member goes, and nobody notices: it hands leadership over before it is removed."""

from __future__ import annotations

from falsework.etcd.gateway import EtcdRefusal, Gateway
from falsework.etcd.members import Member, View
from falsework.operators.etcd.scaling import Tell
from falsework.operators.etcd.teardown import successor


def remove_bootstrap(gateway: Gateway, view: View, bootstrap: Member, tell: Tell) -> str | None:
    """Why etcd will not have it just now; None if it is gone."""
    target = successor(view, bootstrap)
    if target is not None and view.is_healthy(bootstrap) and gateway.leader() == bootstrap.id:
        # Removed as a leader, it would leave the others to an election, and every client waiting for it.
        gateway.move_leadership(bootstrap, target)
        tell("MoveLeader", f"Moved leadership from {bootstrap.name} to {target.name}")
    tell("RemoveBootstrapMember", "Removing bootstrap member")
    try:
        gateway.remove(bootstrap)
    except EtcdRefusal as error:
        if error.is_not_connected_yet:
            return error.said
        if not error.is_done_already:
            raise
    tell("BootstrapMemberRemoved", "Bootstrap member removed")
    return None
