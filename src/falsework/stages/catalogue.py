"""All stages in their order. To add one: write its module, and its line here."""

from __future__ import annotations

from falsework.stages import (
    assets,
    bootstrap,
    cluster_operators,
    control_plane,
    helper,
    masters,
    network,
    pivot,
    preflight,
    release,
    workers,
)
from falsework.stages.model import Stage

STAGES: tuple[Stage, ...] = (
    preflight.STAGE,
    release.STAGE,
    assets.STAGE,
    network.STAGE,
    helper.STAGE,
    bootstrap.MACHINE,
    bootstrap.CONTROL_PLANE,
    masters.STAGE,
    control_plane.ETCD,
    control_plane.STAGE,
    pivot.STAGE,
    workers.STAGE,
    cluster_operators.STAGE,
)
