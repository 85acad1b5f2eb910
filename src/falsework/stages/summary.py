"""The last word of `falsework up`: what was built, how long each stage took, and what to type next."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from falsework.assets.keys_in_folder import ADMIN_KUBECONFIG, ADMIN_PASSWORD
from falsework.errors import FalseworkError
from falsework.kube.resources import CONFIG_MAPS
from falsework.site.model import Site
from falsework.site.problems import counted
from falsework.stages.context import Context
from falsework.stages.events import Event, Kind
from falsework.stages.model import Stage

_CONSOLE = ("console-public", "openshift-config-managed")


def last_run(events: Iterable[Event]) -> list[Event]:
    """The events of the run that began last."""
    found: list[Event] = []
    for event in events:
        if event["kind"] == Kind.RUN and event["state"] == "started":
            found = []
        found.append(event)
    return found


def console_address(context: Context) -> str:
    """Empty where there is no console."""
    with contextlib.suppress(FalseworkError):
        found = context.cluster.one(CONFIG_MAPS, *_CONSOLE)
        return str(((found or {}).get("data") or {}).get("consoleURL") or "")
    return ""


def summary(
    site: Site, folder: Path, stages: Sequence[Stage], run: Sequence[Event], version: str, console: str
) -> list[str]:
    total = next((event["seconds"] for event in run if event["kind"] == Kind.RUN and "seconds" in event), 0.0)
    return [
        f"{site.domain} is up: {_built(site)}; Kubernetes {version}; {_duration(total)}",
        "",
        *_times(stages, run),
        "",
        "What to type next:",
        *_next(site, folder, console),
    ]


def _built(site: Site) -> str:
    machines = ["a helper", counted(len(site.masters), "master")]
    return ", ".join([*machines, *([counted(len(site.workers), "worker")] if site.workers else [])])


def _times(stages: Sequence[Stage], run: Sequence[Event]) -> list[str]:
    ended = {event["stage"]: event for event in run if event["kind"] == Kind.STAGE and event["state"] != "started"}
    width = max(len(stage.title) for stage in stages)
    return [f"  {stage.title:<{width}}  {_spent(ended.get(stage.name))}" for stage in stages]


def _spent(event: Event | None) -> str:
    return f"{event['seconds']:7.1f} s" if event and "seconds" in event else "done already"


def _next(site: Site, folder: Path, console: str) -> list[str]:
    where = f" --dir {folder}"
    rows = [
        (f"falsework verify{where}", "prove that the cluster does what it should"),
        (f"falsework kubectl{where} get nodes", "kubectl, in the lab's network"),
        (
            f"falsework shell{where}",
            f"a shell there, with kubectl, oc, curl; KUBECONFIG is {folder / ADMIN_KUBECONFIG}",
        ),
        (f"falsework forward{where}", "for this host's own kubectl; see also `falsework kubeconfig`"),
    ]
    width = max(len(command) for command, _ in rows)
    lines = [f"  {command:<{width}}  {about}" for command, about in rows]
    lines.append(f"Applications answer at https://NAME.{site.apps_domain}, in the lab's network.")
    if console:
        lines.append(f"The console is {console}; user kubeadmin, password in {folder / ADMIN_PASSWORD}")
    else:
        lines.append(f"The password of kubeadmin is in {folder / ADMIN_PASSWORD}.")
    return lines


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds) // 60} min {int(seconds) % 60} s"
