"""The fourth stage: the lab's network, in namespaces of its own."""

from __future__ import annotations

from falsework.machines import host_settings
from falsework.machines.network import Network
from falsework.machines.view import install_programs, programs_are_there
from falsework.site.problems import counted
from falsework.stages.context import Context
from falsework.stages.model import Stage


def _network(context: Context) -> Network:
    return Network(context.standing_site, context.lab, context.journal, context.say)


def _done(context: Context) -> bool:
    ready = host_settings.are_noted(context.lab) and programs_are_there(context.lab)
    return ready and not _network(context).plan()


def _plan(context: Context) -> list[str]:
    noted = host_settings.are_noted(context.lab)
    note = (
        []
        if noted
        else ["note the kernel's settings that a lab changes, to put them back one day; raise inotify's limits"]
    )
    return [*note, *_network(context).plan()]


def _run(context: Context) -> None:
    # Before there is a machine that could have changed one.
    host_settings.note(context.lab, context.release.os_root)
    host_settings.raise_limits()
    network = _network(context)
    made = network.build()
    install_programs(context.lab, context.release)
    for name in network.surplus():
        context.say(f"{name} has a network here, but the site has no such machine any more")
    context.doing(f"{counted(len(made), 'thing')} made")


STAGE = Stage(
    name="network",
    title="Build the network",
    why="Every machine gets a cable to one bridge; all of it in namespaces, so that nothing outside meets it.",
    needs=("release",),
    done=_done,
    plan=_plan,
    run=_run,
)
