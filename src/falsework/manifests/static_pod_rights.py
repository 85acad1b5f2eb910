"""What an operator of static pods may do: know the masters, and make revisions in its operand's namespace."""

from __future__ import annotations

from falsework.manifests.workload import READ, Rule, core

MASTERS = core("nodes", READ)


def in_operand_namespace() -> list[Rule]:
    """A revision's copies are Secrets too; what is taken away is its ConfigMap, and they go with it."""
    return [
        core("configmaps", (*READ, "create", "update", "patch", "delete")),
        core("secrets", (*READ, "create", "update", "patch")),
        core("pods", READ),
    ]
