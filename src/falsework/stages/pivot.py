"""The pivot: the bootstrap has made way, etcd has let its member go, and then the machine itself is taken away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from falsework.checks import control_plane
from falsework.checks.control_plane import Stand
from falsework.helper.services import BALANCER_CONFIG
from falsework.helper.update import bring_up_to_date
from falsework.lab.journal import Thing
from falsework.machines import network, nspawn, retirement
from falsework.machines.provider import Power
from falsework.stages import control_plane as masters
from falsework.stages import helper, machines
from falsework.stages.conditions import Condition
from falsework.stages.context import Context
from falsework.stages.model import Stage


def _conditions(context: Context) -> list[Condition]:
    """In the order in which they come true; the last two are what the machine's end waits for."""
    return [
        masters.condition(
            context,
            "pivot/complete",
            "the bootstrap says that its work is done",
            lambda: _complete(context),
            "kube-apiserver",
            "get configmap -n kube-system bootstrap -o yaml",
        ),
        masters.condition(
            context,
            "pivot/etcd",
            "the bootstrap's etcd member is removed",
            lambda: control_plane.member_removed(context.cluster),
            "etcd",
            "get etcd cluster -o yaml",
        ),
        *masters.in_balancer(context),
    ]


def _complete(context: Context) -> Stand:
    if control_plane.is_complete(context.cluster):
        return Stand(True, "complete")
    return Stand(False, "not complete", "ConfigMap kube-system/bootstrap does not say `complete`")


def _run(context: Context) -> None:
    if not retirement.is_retired(context.lab):
        context.wait_for(_conditions(context))
    retire(context)


def retire(context: Context) -> None:
    """Take the bootstrap out of everything, first where clients could meet it. Whether it may go is the caller's to
    know. Killed half-way and called again, it finishes."""
    retirement.note(context.lab)
    name = context.site.bootstrap.name
    context.doing(f"{name} leaves the load balancer")
    _leave_balancer(context, name)
    context.doing(f"{name} is powered off and removed, and its records are retired")
    provider = machines.provider(context)
    with ThreadPoolExecutor(max_workers=1) as aside:
        destroyed = aside.submit(provider.destroy, name)
        bring_up_to_date(helper.files(context), provider, context.site.helper.name)
        machines.expect_no_longer(context, [context.site.bootstrap])
        destroyed.result()
    context.journal.removed(Thing(nspawn.KIND, name))
    cable = Thing(network.KIND, context.lab.netns(name))
    network.remove_netns(cable)
    context.journal.removed(cable)
    context.doing(f"{name} is gone; the cluster stands on its own")


def _leave_balancer(context: Context, name: str) -> None:
    """At run time first; then its config, for the next start, so that it is right already and nobody reloads it."""
    wanted = helper.files(context).all_files.get(BALANCER_CONFIG)
    if wanted is None:
        return
    machines.balancer(context).remove(name)
    machines.provider(context).write_file(context.site.helper.name, BALANCER_CONFIG, wanted.content, wanted.mode)


def _is_over(context: Context) -> bool:
    lab, name = context.lab, context.site.bootstrap.name
    if not retirement.is_retired(lab) or machines.provider(context).state(name).power is not Power.ABSENT:
        return False
    if lab.netns_path(name).exists():
        return False
    return all(condition.look().holds for condition in _conditions(context)) and not _is_balanced(context, name)


def _is_balanced(context: Context, name: str) -> bool:
    if context.site.api_vip != context.site.helper.address:
        return False
    return any(server.name == name for server in machines.balancer(context).state())


def _plan(context: Context) -> list[str]:
    name = context.site.bootstrap.name
    return [
        "wait: the bootstrap is complete, and its etcd member is removed",
        f"{context.site.helper.name}: the load balancer drops {name}; DNS, DHCP and boot files know it no longer",
        f"power off and remove machine {name}, with its disk and its cable",
    ]


STAGE = Stage(
    name="pivot",
    title="Take the falsework away",
    why="The control plane of one hands over to that of three and goes; a client of the API does not notice.",
    needs=("control-plane",),
    done=_is_over,
    plan=_plan,
    run=_run,
)
