"""All checks, in the order in which they are shown. To add a guide: write its module, and its line here."""

from __future__ import annotations

from falsework.checks.verify import (
    bootkube_guide,
    bootstrap_guide,
    certificates,
    cluster,
    day_one,
    day_one_cluster,
    etcd,
    formation_guide,
    network,
    steps_guide,
)
from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Check

_MODULES = (
    day_one,
    day_one_cluster,
    bootstrap_guide,
    bootkube_guide,
    formation_guide,
    steps_guide,
    cluster,
    etcd,
    certificates,
    network,
)


def all_checks(facts: Facts) -> list[Check]:
    return [check for module in _MODULES for check in module.checks(facts)]
