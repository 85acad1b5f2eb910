"""The masters' own control plane: etcd grows onto them, then everything else, each component by its operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from falsework.checks import control_plane
from falsework.checks.control_plane import Stand
from falsework.errors import FalseworkError
from falsework.helper.balancer import Balancer, Server, serve_besides
from falsework.helper.render.haproxy import API_BACKEND, MCS_BACKEND
from falsework.site.model import Machine
from falsework.stages import machines
from falsework.stages.conditions import Condition, Seen
from falsework.stages.context import Context
from falsework.stages.model import Stage


def condition(
    context: Context, name: str, waits_for: str, look: Callable[[], Stand], operator: str, evidence: str
) -> Condition:
    """Something an operator brings about, in the cluster's own words."""

    def probe() -> Seen:
        stand = look()
        return Seen(stand.good, stand.state, "" if stand.good else stand.detail, f"falsework kubectl {evidence}")

    return Condition(
        name=name,
        waits_for=waits_for,
        probe=probe,
        patience=context.site.timeouts.pivot,
        cause=f"the {operator} operator has not come that far",
        fix=f"see `falsework kubectl describe co {operator}` and `falsework kubectl get pods -A`",
    )


def _etcd_conditions(context: Context) -> list[Condition]:
    see = "get etcd cluster -o yaml"
    return [
        *(
            condition(
                context,
                f"etcd/{machine.name}",
                f"{machine.name} votes in etcd",
                partial(_voter, context, machine),
                "etcd",
                see,
            )
            for machine in context.site.masters
        ),
        condition(
            context,
            "etcd/members",
            "all of etcd's members are healthy",
            lambda: control_plane.members(context.cluster),
            "etcd",
            see,
        ),
    ]


def _voter(context: Context, machine: Machine) -> Stand:
    return control_plane.voter(context.cluster, context.site, machine)


def _conditions(context: Context) -> list[Condition]:
    return [
        *_revisions(context),
        *_nodes(context),
        *_operators(context),
        *in_balancer(context),
    ]


def _revisions(context: Context) -> list[Condition]:
    return [
        condition(
            context,
            f"control-plane/{name}",
            f"{name} runs on every master",
            partial(_rolled_out, context, name),
            name,
            f"get {resource.plural} cluster -o yaml",
        )
        for name, resource in control_plane.COMPONENTS.items()
    ]


def _rolled_out(context: Context, name: str) -> Stand:
    return control_plane.rolled_out(context.cluster, context.site, control_plane.COMPONENTS[name])


def _nodes(context: Context) -> list[Condition]:
    return [node_ready(context, machine) for machine in context.site.masters]


def node_ready(context: Context, machine: Machine) -> Condition:
    name, fqdn = machine.name, context.site.fqdn(machine)

    def look() -> Stand:
        return control_plane.readiness(context.cluster, fqdn)

    return condition(context, f"node/{name}", f"{name} is Ready", look, "network", f"describe node {fqdn}")


def _operators(context: Context) -> list[Condition]:
    return [
        condition(
            context,
            f"operator/{name}",
            f"the operator {name} is available",
            partial(_operator, context, name),
            name,
            f"get co {name}",
        )
        for name in control_plane.REQUIRED_OPERATORS
    ]


def _operator(context: Context, name: str) -> Stand:
    return control_plane.operator(context.cluster, name)


def in_balancer(context: Context) -> list[Condition]:
    """A site may have a load balancer of its own, which is not ours to ask."""
    ours = context.site.api_vip == context.site.helper.address
    servers = _servers(context)
    return [_balanced(context, backend, servers) for backend in (API_BACKEND, MCS_BACKEND)] if ours else []


def _servers(context: Context) -> Callable[[], list[Server]]:
    """To be asked many times: the way to a load balancer is looked for once, as long as somebody is there."""
    known: list[Balancer] = []

    def servers() -> list[Server]:
        if not known:
            known.append(machines.balancer(context))
        try:
            return known[0].state()
        except FalseworkError:
            # The helper may have been started anew.
            known.clear()
            raise

    return servers


def _balanced(context: Context, backend: str, servers: Callable[[], list[Server]]) -> Condition:
    """The bootstrap serves only while no master does, so this is also how long it is needed there."""
    masters = {machine.name for machine in context.site.masters}

    def probe() -> Seen:
        up = masters.intersection(serve_besides("", backend, servers()))
        return Seen(up == masters, f"{len(up)} of {len(masters)}", evidence="falsework balancer state")

    return Condition(
        name=f"balancer/{backend}",
        waits_for=f"the load balancer has every master's {backend}",
        probe=probe,
        patience=context.site.timeouts.pivot,
        cause="what should serve on the masters is not ready",
        fix="see `falsework balancer state`",
    )


ETCD = Stage(
    name="etcd",
    title="Grow etcd",
    why="Three new members learn what the first one knows, and then vote; no step may cost the majority.",
    needs=("masters",),
    plan=lambda context: [f"wait: {machine.name} votes in etcd" for machine in context.site.masters],
    run=lambda _: None,
    conditions=_etcd_conditions,
)

STAGE = Stage(
    name="control-plane",
    title="Raise the control plane",
    why="API server, controller manager and scheduler on every master, each kept there by an operator.",
    needs=("etcd",),
    plan=lambda _: ["wait: the operators bring their components onto every master"],
    run=lambda _: None,
    conditions=_conditions,
)
