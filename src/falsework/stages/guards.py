"""What a person is kept from doing to a cluster that would not survive it; with --force only told."""

from __future__ import annotations

from collections.abc import Callable

from falsework.checks import removal
from falsework.errors import FalseworkError
from falsework.helper.balancer import Balancer, Server, Status, serve_besides
from falsework.helper.render.haproxy import API_BACKEND
from falsework.machines.provider import Power
from falsework.stages import machines
from falsework.stages.context import Context

Say = Callable[[str], None]


def before_bootstrap_goes(context: Context, command: str, *, force: bool, say: Say, with_disk: bool = False) -> None:
    """`command` is what the person typed. One that is off has nothing to lose but its disk, with etcd's data on it."""
    name = context.site.bootstrap.name
    power = machines.provider(context).state(name).power
    if power is Power.ABSENT or (power is Power.OFF and not with_disk):
        return
    needed = _need(context)
    if force:
        say(f"--force: {needed.loss()}")
    else:
        needed.refuse(f"taking {name} away", f"{command} --force")


def _need(context: Context) -> removal.Need:
    try:
        return removal.need(context.cluster, context.site)
    except FalseworkError as error:
        return removal.Need(removed=False, unknown=error.what)


def before_server_goes(balancer: Balancer, machine: str, command: str, *, force: bool, say: Say) -> None:
    """The last good API server may not leave the load balancer."""
    servers = balancer.state()
    if not any(_serves_api(server, machine) for server in servers) or serve_besides(machine, API_BACKEND, servers):
        return
    if force:
        say(f"--force: nobody answers at the API's address until another one is ready: {machine} is the only one")
        return
    raise FalseworkError(
        f"{machine} is the only API server the load balancer has: without it nobody reaches the cluster",
        cause=f"no other server of {API_BACKEND} is UP",
        fix=f"wait until another one is (`falsework balancer state`); to do it all the same: `{command} --force`",
    )


def _serves_api(server: Server, machine: str) -> bool:
    return server.backend == API_BACKEND and server.name == machine and server.status is Status.UP
