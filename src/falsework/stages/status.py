"""How a lab stands: what is done is looked up now, what is under way is read from the event stream."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from falsework.checks.requests import told_by_approver
from falsework.errors import FalseworkError
from falsework.files import holder_of
from falsework.machines.provider import Power
from falsework.machines.providers import provider_of
from falsework.machines.retirement import is_retired
from falsework.site.records import everyone
from falsework.stages.context import Context
from falsework.stages.events import Event, Kind, read_events
from falsework.stages.joining import is_kept_out
from falsework.stages.model import Stage
from falsework.stages.workers import kept_out

SCHEMA = 1
"""Of the JSON. It grows when a reader would have to change; new keys do not make it grow."""
EVENTS_SHOWN = 20

Status = dict[str, Any]
MachineView = Callable[[Context], list[dict[str, Any]]]


def machines_now(context: Context) -> list[dict[str, Any]]:
    """Every machine of the site, made or not, that is not retired."""
    provider, machines = provider_of(context.lab), everyone(context.standing_site)
    return [{**provider.described(machine.name), "address": str(machine.address)} for machine in machines]


def requests_waiting(context: Context) -> list[dict[str, Any]]:
    """The certificate requests the approver did not approve, and why; while there is a bootstrap, as it last said."""
    if is_retired(context.lab):
        with contextlib.suppress(FalseworkError):
            return [asdict(entry) for entry in kept_out(context)]
        return []
    provider, bootstrap = provider_of(context.lab), context.site.bootstrap.name
    if provider.state(bootstrap).power is not Power.RUNNING:
        return []
    told = told_by_approver(partial(provider.read_file, bootstrap))
    return [asdict(entry) for entry in told.values() if is_kept_out(entry)]


def status_of(context: Context, stages: Sequence[Stage], machines: MachineView = machines_now) -> Status:
    lab = context.lab
    domain = context.site.domain
    busy = holder_of(lab.lock)
    events = list(read_events(lab.events))
    of_stage: dict[str, list[Event]] = {stage.name: [] for stage in stages}
    for event in events:
        if event["kind"] == Kind.STAGE:
            of_stage.setdefault(event["stage"], []).append(event)
    conditions = {event.get("name"): event for event in events if event["kind"] == Kind.CONDITION}
    return {
        "schema": SCHEMA,
        "lab": {
            "id": lab.id,
            "cluster": domain,
            "siteFolder": str(lab.site_folder),
            "folder": str(lab.root),
            "exists": lab.root.is_dir(),
            "changedBy": busy,
        },
        "stages": [_stage(context, stage, of_stage[stage.name], bool(busy)) for stage in stages],
        "conditions": [_condition(event) for event in conditions.values()],
        "machines": machines(context),
        "certificateRequests": requests_waiting(context),
        "events": events[-EVENTS_SHOWN:],
    }


def all_done(status: Status) -> bool:
    return all(stage["state"] in ("done", "passed") for stage in status["stages"])


def _stage(context: Context, stage: Stage, events: list[Event], busy: bool) -> dict[str, Any]:
    last = events[-1] if events else None
    spent: Event = next((event for event in reversed(events) if "seconds" in event), {})
    state, error = _state(context, stage, last, busy)
    return {
        "name": stage.name,
        "title": stage.title,
        "why": stage.why,
        "state": state,
        "since": last["time"] if last else None,
        "seconds": spent.get("seconds"),
        "cpuSeconds": spent.get("cpuSeconds"),
        "error": error,
    }


def _state(context: Context, stage: Stage, last: Event | None, busy: bool) -> tuple[str, Any]:
    """`done` is what is seen. `passed` stands for a stage that leaves nothing to be seen and went well last time."""
    told = last["state"] if last else None
    if told == "started":
        return ("doing" if busy else "interrupted"), None
    try:
        if stage.is_done(context):
            return "done", None
    except FalseworkError as error:
        return "unknown", {"what": error.what, "cause": error.cause, "fix": error.fix}
    if told in ("failed", "interrupted"):
        return told, last.get("error") if last else None
    if not stage.can_tell and told == "finished":
        return "passed", None
    return "waiting", None


def _condition(event: Event) -> dict[str, Any]:
    fields = ("stage", "name", "waitsFor", "holds", "state", "error", "evidence")
    return {**{key: event.get(key) for key in fields}, "since": event["time"] - event.get("forSeconds", 0)}
