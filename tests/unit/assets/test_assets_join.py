"""A join credential is good for one node name in one role."""

from __future__ import annotations

import pytest

from falsework.assets import join
from falsework.site.model import Role

MASTER, WORKER = "master-0.lab.falsework.test", "worker-0.lab.falsework.test"
INVENTORY = {MASTER: Role.MASTER, WORKER: Role.WORKER}


def identity(node: str, role: Role) -> tuple[str, tuple[str, ...]]:
    subject = join.subject_for(node, role)
    return subject.common_name, (*subject.organizations, "system:authenticated")


def test_a_machine_may_ask_for_its_own_name() -> None:
    assert join.refusal(*identity(WORKER, Role.WORKER), WORKER, INVENTORY) is None
    assert join.refusal(*identity(MASTER, Role.MASTER), MASTER, INVENTORY) is None


@pytest.mark.parametrize(
    ("requester", "groups", "asked_for", "why"),
    [
        (*identity(WORKER, Role.WORKER), MASTER, "asks for the node name master-0"),
        (*identity(MASTER, Role.MASTER), WORKER, "asks for the node name worker-0"),
        (*identity(MASTER, Role.WORKER), MASTER, "is a master, its join credential is for worker"),
        (
            *identity("intruder.lab.falsework.test", Role.WORKER),
            "intruder.lab.falsework.test",
            "no machine of this site",
        ),
        (join.USER_PREFIX + WORKER, (), WORKER, "not in the group"),
        (join.USER_PREFIX + WORKER, (join.GROUP,), WORKER, "no role"),
        (f"system:node:{WORKER}", (join.GROUP,), WORKER, "no machine's join identity"),
        ("system:admin", ("system:masters",), WORKER, "no machine's join identity"),
    ],
)
def test_and_for_nothing_else(requester: str, groups: tuple[str, ...], asked_for: str, why: str) -> None:
    refusal = join.refusal(requester, groups, asked_for, INVENTORY)
    assert refusal is not None
    assert why in refusal


def test_both_roles_at_once_are_refused() -> None:
    both = (join.GROUP, join.ROLE_GROUP_PREFIX + "worker", join.ROLE_GROUP_PREFIX + "master")
    assert join.refusal(join.USER_PREFIX + WORKER, both, WORKER, INVENTORY) is not None


def test_the_prefix_is_as_long_as_a_nodes() -> None:
    assert len(join.USER_PREFIX) == len("system:node:")
