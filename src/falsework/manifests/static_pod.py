"""What an operator of static pods may do, beside what all operators may."""

from __future__ import annotations

from falsework.manifests.workload import READ, Rule, core


def operand_rules() -> list[Rule]:
    """In the operand's namespace: inputs and their copies are there, the daemons' reports, the pods."""
    return [
        core("configmaps", (*READ, "create", "update", "patch", "delete")),
        core("secrets", (*READ, "create", "update")),
        core("pods", READ),
    ]


def node_rules() -> list[Rule]:
    """In the whole cluster: which masters there are."""
    return [core("nodes", READ)]
