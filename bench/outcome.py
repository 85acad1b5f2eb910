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
    details: dict[str, float]
    """What happened within the steps → seconds since power on."""
    from_start: float
    from_power_on: float
    machines_cpu_seconds: float
    host_cpu_seconds: float
    """Of `falsework up` itself."""
    other_cpu_seconds: float
    """Of everything else on the host, which made this slower."""
    peak_mib: float
    """Anonymous memory of all machines at one moment."""

    def has_reached(self, name: str) -> bool:
        return any(step.name == name for step in self.steps)

    def reached(self, name: str) -> float:
        """Seconds from power on to the end of a step."""
        return next(step.since_power_on for step in self.steps if step.name == name)


def steps_of(began: float, moments: Mapping[str, float], cpu_until: Callable[[float], float]) -> list[Step]:
    """One after the other by the moments at which they were over."""
    steps = []
    before, power_on = began, moments.get(POWER_ON, began)
    for name, moment in sorted(moments.items(), key=lambda item: item[1]):
        steps.append(Step(name, moment - before, moment - power_on, cpu_until(moment) - cpu_until(before)))
        before = moment
    return steps


def table(title: str, outcome: Outcome, *, details: bool) -> str:
    rows = [(step.since_power_on, _row(step)) for step in outcome.steps]
    if details:
        rows += [(at, f"    {name:<52.52} {at:8.2f}") for name, at in outcome.details.items()]
    total = f"  {'in all':<34} {outcome.from_start:8.2f} {outcome.machines_cpu_seconds:8.2f}"
    head = f"{title:<36} {'wall s':>8} {'CPU s':>8} {'at s':>8}  since power on"
    return "\n".join([head, *(text for _, text in sorted(rows)), total])


def _row(step: Step) -> str:
    return f"  {step.name:<34} {step.seconds:8.2f} {step.cpu_seconds:8.2f} {step.since_power_on:8.2f}"
