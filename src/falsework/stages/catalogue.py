"""All stages in their order. To add one: write its module, and its line here."""

from __future__ import annotations

from falsework.stages import assets, bootstrap, helper, network, preflight, release
from falsework.stages.model import Stage

STAGES: tuple[Stage, ...] = (
    preflight.STAGE,
    release.STAGE,
    assets.STAGE,
    network.STAGE,
    helper.STAGE,
    bootstrap.MACHINE,
    bootstrap.CONTROL_PLANE,
)
