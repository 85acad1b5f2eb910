"""What a Node gets, for every role and every state it may be in."""

from __future__ import annotations

from typing import Any

import pytest

from falsework.node_roles.rules import CONTROL_PLANE, MASTER, WORKER, correction
from falsework.site.model import Role

TAINT = {"key": MASTER, "effect": "NoSchedule"}
OTHER_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
PREFIX = "machineconfiguration.openshift.io"


def node(labels: dict[str, str] | None = None, taints: list[Any] | None = None, config: str = "") -> dict[str, Any]:
    annotations = {f"{PREFIX}/currentConfig": config} if config else {}
    metadata = {"name": "n", "resourceVersion": "7", "labels": labels or {}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"taints": taints} if taints else {}}


@pytest.mark.parametrize(
    ("found", "role", "schedulable", "patch"),
    [
        (node({}, [TAINT]), Role.MASTER, False, {"labels": {MASTER: "", CONTROL_PLANE: ""}}),
        (node({MASTER: "", CONTROL_PLANE: ""}, [TAINT]), Role.MASTER, False, None),
        (node({MASTER: "", CONTROL_PLANE: "", WORKER: ""}, [TAINT]), Role.MASTER, False, {"labels": {WORKER: None}}),
        (node({}), Role.MASTER, None, {"labels": {MASTER: "", CONTROL_PLANE: ""}}),
        (node({MASTER: "", CONTROL_PLANE: ""}, [TAINT]), Role.MASTER, None, None),
        (node({}), Role.WORKER, None, {"labels": {WORKER: ""}}),
        (node({WORKER: ""}), Role.WORKER, False, None),
        (node({WORKER: "", MASTER: ""}), Role.WORKER, False, {"labels": {MASTER: None}}),
    ],
)
def test_labels(found: dict[str, Any], role: Role, schedulable: bool | None, patch: dict[str, Any] | None) -> None:
    assert correction(found, role, schedulable, None) == ({"metadata": patch} if patch else None)


@pytest.mark.parametrize(
    ("taints", "role", "schedulable", "wanted"),
    [
        ([], Role.MASTER, False, [TAINT]),
        ([OTHER_TAINT], Role.MASTER, False, [OTHER_TAINT, TAINT]),
        ([TAINT, OTHER_TAINT], Role.MASTER, True, [OTHER_TAINT]),
        ([{"key": CONTROL_PLANE, "effect": "NoSchedule"}], Role.MASTER, True, []),
        ([{"key": MASTER, "effect": "NoExecute"}], Role.MASTER, True, None),
        ([TAINT], Role.WORKER, None, []),
        ([OTHER_TAINT, TAINT], Role.MASTER, False, None),
    ],
)
def test_taints(taints: list[Any], role: Role, schedulable: bool | None, wanted: list[Any] | None) -> None:
    """Others' taints stay, and a list that was changed meanwhile is not overwritten."""
    patch = correction(node({}, taints), role, schedulable, None)
    assert patch is not None
    assert patch.get("spec") == (None if wanted is None else {"taints": wanted})
    assert ("resourceVersion" in patch["metadata"]) == (wanted is not None)


def test_the_config_it_was_made_with_is_told_once() -> None:
    patch = correction(node({WORKER: ""}), Role.WORKER, False, "rendered-worker-1")
    assert patch is not None
    first = {f"{PREFIX}/currentConfig": "rendered-worker-1", f"{PREFIX}/desiredConfig": "rendered-worker-1"}
    assert patch["metadata"] == {"annotations": {**first, f"{PREFIX}/state": "Done"}}
    known = node({WORKER: ""}, config="rendered-worker-0")
    assert correction(known, Role.WORKER, False, "rendered-worker-1") is None
