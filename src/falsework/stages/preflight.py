"""The first stage: whether this host can carry the lab. All that is wrong is said at once, each with what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from falsework.host import packages
from falsework.stages import check_host, check_leftovers, check_resources, check_site
from falsework.stages.context import Context
from falsework.stages.findings import Finding, HostNotFitError, Level
from falsework.stages.model import Stage


@dataclass(frozen=True)
class Check:
    name: str
    look: Callable[[Context], Iterable[Finding]]
    tries: str = ""
    """What it makes and removes again in order to know; empty if it only looks."""


CHECKS = (
    Check("root", check_host.root),
    Check("distribution", check_site.distribution),
    Check("providers", check_site.providers),
    Check("lab folder", check_leftovers.own_folder),
    Check("stray namespaces", check_leftovers.own_namespaces),
    Check("other labs", check_leftovers.other_labs),
    Check("capabilities", check_host.capabilities),
    Check("memory", check_resources.memory),
    Check("processors", check_resources.cpus),
    Check("disk", check_resources.disk),
    Check("mount options", check_host.mount_options),
    Check("inotify", check_host.inotify),
    Check("limits", check_host.limits),
    Check("NFS client", check_host.nfs_client),
    Check("clock", check_host.clock),
    Check("programs", check_host.programs, tries="install the programs that are missing"),
    Check("overlay mounts", check_host.overlay, tries="an overlay mount in a mount namespace of its own"),
    Check("network", check_host.network, tries="a bridge, a veth pair and a firewall table in a throw-away namespace"),
    Check("control groups", check_host.cgroups, tries="an empty control group in every hierarchy"),
)


def examine(context: Context, checks: Iterable[Check]) -> list[Finding]:
    return [finding for check in checks for finding in check.look(context)]


def _run(context: Context) -> None:
    found = examine(context, CHECKS)
    for finding in found:
        if finding.level in (Level.NOTE, Level.WARNING):
            context.say(str(finding))
    context.doing(f"{len(CHECKS)} checks passed")
    if problems := [finding for finding in found if finding.level is Level.PROBLEM]:
        raise HostNotFitError(problems)


def _plan(context: Context) -> list[str]:
    """Only what can be seen without trying; the rest is named."""
    found = examine(context, (check for check in CHECKS if not check.tries))
    missing = packages.missing(check_host.HOST_PROGRAMS)
    return [
        *(str(finding) for finding in found if finding.level is not Level.OK),
        *([f"install what brings {', '.join(missing)}"] if missing else []),
        *(f"try {check.tries}" for check in CHECKS if check.tries and check.name != "programs"),
    ]


STAGE = Stage(
    name="preflight",
    title="Check this host",
    why="Whatever could stop us half-way is found now, all of it at once, while nothing has been made yet.",
    run=_run,
    plan=_plan,
)
