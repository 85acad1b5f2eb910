"""What is said of the members: whether there is a quorum, who is unwell, and who is on the way."""

from __future__ import annotations

from falsework.etcd.members import View, quorum
from falsework.operators.runtime.conditions import Condition, condition


def members_conditions(view: View) -> list[Condition]:
    started = [member for member in view.members if member.is_started]
    coming = [member for member in view.members if not member.is_started or member.is_learner]
    sick = view.unhealthy(started)
    healthy = len(view.voters) - len(view.unhealthy(view.voters))
    counted = f"{len(started) - len(sick)} of {len(started)} members are available"
    said = ", ".join([counted, *(f"{member.title} is unhealthy ({view.faults[member.id]})" for member in sick)])
    there = healthy >= quorum(len(view.voters))
    return [
        condition(
            "EtcdMembersAvailable",
            there,
            "EtcdQuorate" if there else "NoQuorum",
            said,
        ),
        condition(
            "EtcdMembersDegraded",
            bool(sick),
            "UnhealthyMembers" if sick else "AsExpected",
            said if sick else "",
        ),
        condition(
            "EtcdMembersProgressing",
            bool(coming),
            "MembersNotStarted" if coming else "AsExpected",
            f"on the way: {', '.join(member.title for member in coming)}" if coming else "",
        ),
    ]
