"""Who a machine is before it is a node.

Every machine has a client certificate of its own, good for a day, that names the machine and its role:

    CN  system:join:<node name>                  the one node name it may ask for
    O   system:bootstrappers                     may create certificate requests, and nothing else (RBAC)
    O   system:bootstrappers:falsework:<role>    the role it may have

`system:join:` is as long as the kubelet's own `system:node:`, so a name that fits one fits the other. RBAC
cannot look into a request. Whoever approves it calls `refusal`, which compares what is asked for with who
asks and with the inventory.

The identity that OpenShift gives to all machines alike (the service account node-bootstrapper) does not exist
here: it may ask for any node's name, it lives for ten years, and its name is longer than X.509 allows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from falsework.assets.subject import Subject
from falsework.site.model import Role

USER_PREFIX = "system:join:"
GROUP = "system:bootstrappers"
ROLE_GROUP_PREFIX = "system:bootstrappers:falsework:"


def subject_for(node: str, role: Role) -> Subject:
    return Subject(f"{USER_PREFIX}{node}", (GROUP, f"{ROLE_GROUP_PREFIX}{role}"))


def refusal(requester: str, groups: Collection[str], asked_for: str, inventory: Mapping[str, Role]) -> str | None:
    """Why a request for the node name `asked_for` must not be approved, or None if it may be.

    `inventory` has the role of every node name of the site.
    """
    if not requester.startswith(USER_PREFIX):
        return f"{requester} is no machine's join identity"
    node = requester.removeprefix(USER_PREFIX)
    if asked_for != node:
        return f"the join credential of {node} asks for the node name {asked_for}"
    if GROUP not in groups:
        return f"{requester} is not in the group {GROUP}"
    role = inventory.get(node)
    if role is None:
        return f"{node} is no machine of this site"
    claimed = {group.removeprefix(ROLE_GROUP_PREFIX) for group in groups if group.startswith(ROLE_GROUP_PREFIX)}
    if claimed != {str(role)}:
        return f"{node} is a {role}, its join credential is for {', '.join(sorted(claimed)) or 'no role'}"
    return None
