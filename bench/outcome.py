"""What one way to a cluster took: step by step, and in all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

POWER_ON = "power on"


@dataclass(frozen=True)
class Step:
    name: str
    seconds: float
    """Since the step before was over; steps that overlap are told apart by their ends alone."""
    since_power_on: float
    cpu_seconds: float
    """Of all machines meanwhile, the helper included."""


@dataclass(frozen=True)
class Outcome:
    steps: list[Step]
    from_start: float
    from_power_on: float
    machines_cpu_seconds: float
    host_cpu_seconds: float
    """Of `falsework up` itself."""
    other_cpu_seconds: float
    """Of everything else on the host, which made this slower."""
    peak_mib: float
    """Anonymous memory of all machines at one moment."""


def steps_of(began: float, moments: Mapping[str, float], cpu_until: Callable[[float], float]) -> list[Step]:
    steps = []
    before = began
    power_on = moments.get(POWER_ON, began)
    for name, moment in sorted(moments.items(), key=lambda item: item[1]):
        spent = cpu_until(moment) - cpu_until(before)
        steps.append(Step(name, moment - before, moment - power_on, spent))
        before = moment
    return steps


def table(title: str, outcome: Outcome) -> str:
    lines = [f"{title:<36} {'wall s':>8} {'CPU s':>8} {'at':>8}   (seconds since power on)"]
    lines += [
        f"  {step.name:<34} {step.seconds:8.2f} {step.cpu_seconds:8.2f} {step.since_power_on:8.2f}"
        for step in outcome.steps
    ]
    wall, cpu = outcome.from_start, outcome.machines_cpu_seconds
    lines.append(f"  {'in all':<34} {wall:8.2f} {cpu:8.2f} {outcome.from_power_on:8.2f}")
    return "\n".join(lines)
