"""The end: every operator says that its part is there and at rest, and so does the cluster's version."""

from __future__ import annotations

from functools import partial

from falsework.checks import settled
from falsework.checks.control_plane import Stand
from falsework.manifests.cluster_operators import NAMES as OPERATORS
from falsework.stages.conditions import Condition, Seen
from falsework.stages.context import Context
from falsework.stages.control_plane import node_ready
from falsework.stages.model import Stage


def _conditions(context: Context) -> list[Condition]:
    return [
        *(node_ready(context, machine) for machine in (*context.site.masters, *context.site.workers)),
        _daemons(context),
        *(_operator(context, name) for name in OPERATORS),
        _version(context),
    ]


def _daemons(context: Context) -> Condition:
    return Condition(
        name="settled/daemons",
        waits_for="every node has the pods that each node has",
        probe=lambda: _seen(settled.daemons(context.cluster), "falsework kubectl get daemonsets -A"),
        patience=context.site.timeouts.operators,
        cause="a pod does not start on one of the nodes",
        fix="see `falsework kubectl get pods -A -o wide`",
    )


def _operator(context: Context, name: str) -> Condition:
    def probe() -> Seen:
        return _seen(settled.operator(context.cluster, name), f"falsework kubectl describe co {name}")

    return Condition(
        name=f"settled/{name}",
        waits_for=f"the operator {name} is available and at rest",
        probe=probe,
        patience=context.site.timeouts.operators,
        cause=f"the operator {name} does not come to an end with what it is at",
        fix=f"see `falsework kubectl describe co {name}` and `falsework kubectl get pods -A`",
    )


def _version(context: Context) -> Condition:
    look = partial(settled.version, context.cluster)
    return Condition(
        name="settled/version",
        waits_for="the cluster has all of its release",
        probe=lambda: _seen(look(), "falsework kubectl get clusterversion version -o yaml"),
        patience=context.site.timeouts.operators,
        cause="a manifest of the release cannot be applied, or an operator does not report its version",
        fix="see `falsework kubectl describe clusterversion version`",
    )


def _seen(stand: Stand, evidence: str) -> Seen:
    return Seen(stand.good, stand.state, "" if stand.good else stand.detail, evidence)


STAGE = Stage(
    name="cluster-operators",
    title="Let the operators finish",
    why="Each part of the cluster has an operator who knows when it is done; the cluster is, when all of them say so.",
    needs=("workers",),
    plan=lambda _: ["wait: every operator is available and at rest, and all nodes are Ready"],
    run=lambda _: None,
    conditions=_conditions,
    # Whoever was at rest has work again when another node joins.
    together=True,
)
