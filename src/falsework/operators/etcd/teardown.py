"""When the bootstrap's member may go: enough others, all of them well, and a cluster that says it stands alone."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.etcd.members import Member, View
from falsework.etcd.settings import BOOTSTRAP_MEMBER
from falsework.operators.etcd.membership import may_remove

_ENOUGH = {"SingleReplica": 2, "DualReplica": 3}
"""Members there must be, the bootstrap's included, by the control plane's topology; elsewhere four."""


@dataclass(frozen=True)
class Teardown:
    bootstrap: Member | None
    missing: str | None
    """Why etcd does not run in the cluster yet."""


def judge(view: View, topology: str) -> Teardown:
    bootstrap = view.named(BOOTSTRAP_MEMBER)
    if bootstrap is None:
        return Teardown(None, None)
    enough = _ENOUGH.get(topology, 4)
    others = [member for member in view.voters if member != bootstrap]
    if len(others) + 1 < enough:
        return Teardown(bootstrap, f"{len(others) + 1} of {enough} voting members are there")
    if sick := view.unhealthy(others):
        return Teardown(bootstrap, f"not healthy: {', '.join(member.title for member in sick)}")
    if not may_remove(view, bootstrap):
        return Teardown(bootstrap, "quorum would not survive its removal")
    return Teardown(bootstrap, None)
