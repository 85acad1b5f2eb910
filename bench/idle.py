"""What a lab costs that nobody uses: CPU and memory of each machine, of each program, of each of Falsework's pods.

    ./falsework bench idle [--dir FOLDER] [--seconds N] [--settle N] [--json FILE]

With --dir it looks at the lab of that site as it stands, and changes nothing; without, at one of its own, which is
raised for it and removed. Ends with 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from meter import anonymous_bytes, host_busy_seconds
from process_cost import Cost, Identity, Process, costs, processes
from throwaway import falsework, throwaway_lab

from falsework.errors import FalseworkError
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines import cgroups, share
from falsework.machines.cgroups import Group

CPU_LIMIT = 5.0
"""Percent of one core, for all of Falsework's pods together."""
MEMORY_LIMIT = 70e6
"""Bytes each of them may have resident."""

_MIB = 2**20


@dataclass(frozen=True)
class Machine:
    name: str
    cpu_percent: float
    anonymous_bytes: int
    """Without the page cache, which the kernel takes back when it likes."""


@dataclass(frozen=True)
class Idle:
    seconds: float
    machines: list[Machine]
    programs: list[Cost]
    others_cpu_percent: float
    """Of everything else on the host: what it takes away makes the lab look busier, too."""

    @property
    def ours(self) -> list[Cost]:
        return [cost for cost in self.programs if cost.is_ours]

    @property
    def our_cpu_percent(self) -> float:
        return sum(cost.cpu_percent for cost in self.ours)

    @property
    def missed(self) -> list[str]:
        """What was asked for and is not so."""
        missed = [
            f"{cost.name} has {cost.largest_bytes / 1e6:.0f} MB resident, of at most {MEMORY_LIMIT / 1e6:.0f}"
            for cost in self.ours
            if cost.largest_bytes > MEMORY_LIMIT
        ]
        if self.our_cpu_percent > CPU_LIMIT:
            missed.append(f"Falsework's pods take {self.our_cpu_percent:.1f} % of a core, of at most {CPU_LIMIT:.0f}")
        return missed


@dataclass(frozen=True)
class _Moment:
    time: float
    host_busy: float
    machines: dict[str, float]
    """Name → CPU seconds so far."""
    processes: dict[Identity, Process]


def main(words: Sequence[str]) -> int:
    options = _options(words)
    if options.dir is not None:
        idle = measured(Lab.of(options.dir), options.settle, options.seconds)
    else:
        with throwaway_lab() as lab:
            falsework("up", "--dir", str(lab.site_folder))
            idle = measured(lab, options.settle, options.seconds)
    if options.json:
        options.json.write_text(json.dumps(as_data(idle), indent=1))
    print(table(idle))
    return 1 if idle.missed else 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="falsework bench idle")
    parser.add_argument("--dir", type=Path, help="the site's folder of a lab that runs (default: a lab of its own)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it is looked at (default: 60)")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds it has before that (default: 60)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured to a file")
    return parser.parse_args(words)


def measured(lab: Lab, settle: float, seconds: float) -> Idle:
    groups = share.noted_groups(Journal(lab.journal))
    if not cgroups.processes(groups):
        raise FalseworkError(f"the lab of {lab.site_folder} does not run", fix="`./falsework up` starts it")
    time.sleep(settle)
    before = _moment(lab, groups)
    time.sleep(seconds)
    after = _moment(lab, groups)
    return _between(before, after, groups)


def _moment(lab: Lab, groups: Sequence[Group]) -> _Moment:
    names = [path.name for path in sorted(lab.machine("x").parent.iterdir())]
    used = {name: cgroups.usage(_of(groups, name)).cpu_seconds for name in names}
    return _Moment(time.monotonic(), host_busy_seconds(), used, processes(cgroups.processes(groups)))


def _between(before: _Moment, after: _Moment, groups: Sequence[Group]) -> Idle:
    seconds = after.time - before.time
    used = {name: total - before.machines.get(name, 0.0) for name, total in after.machines.items()}
    machines = [
        Machine(name, 100 * cpu / seconds, anonymous_bytes(_of(groups, name))) for name, cpu in used.items() if cpu
    ]
    others = after.host_busy - before.host_busy - sum(used.values())
    programs = costs(before.processes, after.processes, seconds)
    return Idle(seconds, machines, programs, 100 * max(0.0, others) / seconds)


def _of(groups: Sequence[Group], machine: str) -> list[Group]:
    return [group.child(machine) for group in groups]


def as_data(idle: Idle) -> dict[str, object]:
    limits = {"cpuPercent": CPU_LIMIT, "residentBytes": MEMORY_LIMIT}
    return {**asdict(idle), "ourCpuPercent": idle.our_cpu_percent, "limits": limits, "missed": idle.missed}


def table(idle: Idle) -> str:
    all_cpu = sum(machine.cpu_percent for machine in idle.machines)
    all_memory = sum(machine.anonymous_bytes for machine in idle.machines)
    lines = [f"{'over ' + format(idle.seconds, '.0f') + ' s':<36} {'% of a core':>12} {'anonymous MiB':>14}"]
    lines += [_machine_row(machine.name, machine.cpu_percent, machine.anonymous_bytes) for machine in idle.machines]
    lines.append(_machine_row("the whole lab", all_cpu, all_memory))
    for title, of_ours in (("Falsework's pods", True), ("everything else in the machines", False)):
        rows = [cost for cost in idle.programs if cost.is_ours is of_ours]
        lines += ["", f"{title:<36} {'% of a core':>12} {'largest, MB':>14} {'number':>7} {'all, MB':>8}"]
        lines += [_cost_row(cost) for cost in rows]
        lines.append(_cost_row(_sum(rows)))
    lines += ["", f"all else on this host: {idle.others_cpu_percent:.1f} % of a core, of {os.cpu_count()} cores"]
    lines += [f"MISSED: {what}" for what in idle.missed]
    return "\n".join(lines)


def _machine_row(name: str, cpu_percent: float, memory: float) -> str:
    return f"  {name:<34} {cpu_percent:12.2f} {memory / _MIB:14.0f}"


def _cost_row(cost: Cost) -> str:
    largest, together = cost.largest_bytes / 1e6, cost.proportional_bytes / 1e6
    return f"  {cost.name:<34.34} {cost.cpu_percent:12.2f} {largest:14.0f} {cost.processes:7} {together:8.0f}"


def _sum(rows: Sequence[Cost]) -> Cost:
    return Cost(
        "together",
        False,
        sum(cost.processes for cost in rows),
        sum(cost.cpu_percent for cost in rows),
        max((cost.largest_bytes for cost in rows), default=0),
        sum(cost.proportional_bytes for cost in rows),
    )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FalseworkError as error:
        sys.exit(f"falsework bench idle: {error}")
