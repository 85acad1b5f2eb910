"""Goes through the stages: looks first, runs what is not done, tells the event stream."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from falsework.errors import FalseworkError
from falsework.stages.context import Context
from falsework.stages.events import Kind
from falsework.stages.model import Stage


def up_to(stages: Sequence[Stage], until: str | None) -> tuple[Stage, ...]:
    """The stages as far as the one named, with it; all of them without a name."""
    names = [stage.name for stage in stages]
    return tuple(stages) if until is None else tuple(stages[: names.index(until) + 1])


def run(context: Context, stages: Sequence[Stage]) -> None:
    """Bring the lab to where these stages lead. The caller holds the lab's lock."""
    context.note(Kind.RUN, state="started", process=os.getpid(), until=stages[-1].name)
    with closing(context), _outcome(context, Kind.RUN):
        for stage in stages:
            _run_stage(context, stage)


def _run_stage(context: Context, stage: Stage) -> None:
    context.stage = stage.name
    with context.progress.task(stage.title) as context.task:
        try:
            context.doing("looking")
            if stage.is_done(context):
                context.doing("done already")
                context.note(Kind.STAGE, stage=stage.name, state="skipped")
                return
            context.doing("")
            context.note(Kind.STAGE, stage=stage.name, state="started")
            with _outcome(context, Kind.STAGE, stage=stage.name):
                stage.run(context)
                if stage.conditions:
                    context.wait_for(stage.conditions(context), together=stage.together)
        finally:
            context.task = None


@contextmanager
def _outcome(context: Context, kind: Kind, **fields: str) -> Iterator[None]:
    """Note how the block ended, how long it took and how much work it was."""
    started, cpu = time.monotonic(), _cpu_seconds()

    def ended(state: str, **more: Any) -> None:
        spent = {"seconds": round(time.monotonic() - started, 3), "cpuSeconds": round(_cpu_seconds() - cpu, 3)}
        context.note(kind, **fields, state=state, **spent, **more)

    try:
        yield
    except KeyboardInterrupt:
        ended("interrupted")
        raise
    except FalseworkError as error:
        ended("failed", error={"what": error.what, "cause": error.cause, "fix": error.fix})
        raise
    except Exception as error:
        ended("failed", error={"what": f"{type(error).__name__}: {error}", "cause": None, "fix": None})
        raise
    ended("finished")


def _cpu_seconds() -> float:
    """Of this process and of the programs it has run to their end."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass(frozen=True)
class Planned:
    stage: Stage
    done: bool
    steps: tuple[str, ...] = ()


def dry_run(context: Context, stages: Sequence[Stage]) -> Iterator[Planned]:
    """What `run` would do now. Touches nothing."""
    for stage in stages:
        if stage.is_done(context):
            yield Planned(stage, True)
        else:
            yield Planned(stage, False, tuple(stage.plan(context)) if stage.plan else (stage.title,))
