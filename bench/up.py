"""From `up` to a control plane that stands by itself, stage by stage; and beside it kubeadm, on the same machines.

    ./falsework bench up [--runs N] [--only falsework|kubeadm] [--until STAGE] [--details] [--json FILE]

Two labs, one after the other, each removed at its end; the release is built before. How to read the numbers is in
docs/benchmarks.md. Ends with 1 if Falsework takes longer to its pivot than kubeadm to all Ready.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from kubeadm_peer import cluster
from kubeadm_peer.cluster import KubeadmCluster
from kubeadm_peer.images import peer_images
from meter import Meter
from outcome import POWER_ON, Outcome, steps_of, table
from ready import AllReady
from throwaway import falsework, throwaway_lab

from falsework.kube.resources import NODES
from falsework.lab.folder import Lab
from falsework.machines.lab_api import lab_client
from falsework.machines.view import View
from falsework.progress import Progress
from falsework.site.load import default_site
from falsework.stages.catalogue import STAGES
from falsework.stages.context import Context
from falsework.stages.events import Kind, read_events

FALSEWORK, KUBEADM = "falsework", "kubeadm"
_FIRST_MACHINES = "bootstrap-machine"
_PIVOT = "pivot"
_WITH_MASTERS, _WITH_ALL = (_PIVOT,), ("workers", "cluster-operators")
"""The stages after which there are nodes to be Ready."""


def main(words: Sequence[str]) -> int:
    options = _options(words)
    falsework("release", "build")
    load = os.getloadavg()[0]
    outcomes: dict[str, list[Outcome]] = {name: [] for name in options.only or (FALSEWORK, KUBEADM)}
    with contextlib.ExitStack() as stack:
        ways: dict[str, Callable[[], Outcome]] = {FALSEWORK: partial(falsework_run, options.until)}
        if KUBEADM in outcomes:
            store = stack.enter_context(peer_images())
            ways[KUBEADM] = partial(kubeadm_run, store, with_workers=not options.without_workers)
        for _ in range(options.runs):
            for name, found in outcomes.items():
                found.append(ways[name]())
    if options.json:
        runs = {name: [asdict(outcome) for outcome in found] for name, found in outcomes.items()}
        options.json.write_text(json.dumps({"loadBefore": load, "until": options.until, "runs": runs}, indent=1))
    for name, found in outcomes.items():
        for number, outcome in enumerate(found, 1):
            print(f"\n{table(f'{name}, run {number} of {len(found)}', outcome, details=options.details)}")
    print(f"\nload of the host before: {load:.2f}, with {os.cpu_count()} processors")
    show_medians(outcomes)
    return compared(outcomes[FALSEWORK], outcomes[KUBEADM], options.until) if len(outcomes) > 1 else 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    stages = [stage.name for stage in STAGES]
    parser = argparse.ArgumentParser(prog="falsework bench up")
    parser.add_argument("--runs", type=int, default=1, help="of each; the medians are compared")
    parser.add_argument("--only", choices=(FALSEWORK, KUBEADM), action="append", help="one of the two")
    parser.add_argument("--until", choices=stages, default=stages[-1], help="Falsework's last stage")
    parser.add_argument("--without-workers", action="store_true", help="kubeadm with its control planes alone")
    parser.add_argument("--details", action="store_true", help="show what happened when within the steps, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured to a file")
    return parser.parse_args(words)


def falsework_run(until: str) -> Outcome:
    site = default_site()
    with throwaway_lab() as lab:
        with Meter(lab) as meter:
            falsework("up", "--until", until, "--dir", str(lab.site_folder))
            moments = stage_ends(lab)
            if until in _WITH_MASTERS + _WITH_ALL:
                count = len(site.masters) + (len(site.workers) if until in _WITH_ALL else 0)
                with AllReady(lab_client(View(site, lab)), NODES, count) as nodes:
                    moments[cluster.NODES_READY] = nodes.wait()
        return outcome_of(lab, meter, moments, conditions_met(lab))


def kubeadm_run(store: Path, *, with_workers: bool) -> Outcome:
    with throwaway_lab() as lab:
        with Meter(lab) as meter, Progress() as progress:
            falsework("up", "--until", "helper", "--dir", str(lab.site_folder))
            peer = KubeadmCluster(Context(lab, default_site, progress), store, with_workers=with_workers)
            peer.bring_up()
        return outcome_of(lab, meter, {**stage_ends(lab), **peer.moments}, peer.details)


def stage_ends(lab: Lab) -> dict[str, float]:
    """Stage → when it was over; and when the first machines of the cluster were about to get power."""
    moments: dict[str, float] = {}
    for event in read_events(lab.events):
        if event["kind"] != Kind.STAGE:
            continue
        if event["state"] in ("finished", "skipped"):
            moments[event["stage"]] = event["time"]
        elif event["stage"] == _FIRST_MACHINES:
            moments[POWER_ON] = event["time"]
    return moments


def conditions_met(lab: Lab) -> dict[str, float]:
    """What stages waited for → when it was seen to hold."""
    events = (event for event in read_events(lab.events) if event["kind"] == Kind.CONDITION)
    return {event["waitsFor"]: event["time"] for event in events if event["holds"]}


def outcome_of(lab: Lab, meter: Meter, moments: dict[str, float], details: dict[str, float]) -> Outcome:
    end = max(moments.values())
    power_on = moments.get(POWER_ON, meter.began)
    machines = meter.cpu_until(end)
    ours = sum(event.get("cpuSeconds", 0.0) for event in read_events(lab.events) if event["kind"] == Kind.RUN)
    return Outcome(
        steps=steps_of(meter.began, moments, meter.cpu_until),
        details={name: moment - power_on for name, moment in details.items()},
        from_start=end - meter.began,
        from_power_on=end - power_on,
        machines_cpu_seconds=machines,
        host_cpu_seconds=ours,
        other_cpu_seconds=meter.host_busy - machines - ours,
        peak_mib=meter.peak_anonymous_bytes / 2**20,
    )


def show_medians(outcomes: dict[str, list[Outcome]]) -> None:
    rows: dict[str, Callable[[Outcome], float]] = {
        "from up to the end, s": lambda outcome: outcome.from_start,
        "from power on to the end, s": lambda outcome: outcome.from_power_on,
        "CPU of the machines, s": lambda outcome: outcome.machines_cpu_seconds,
        "CPU of falsework up, s": lambda outcome: outcome.host_cpu_seconds,
        "CPU of all else on the host, s": lambda outcome: outcome.other_cpu_seconds,
        "peak anonymous memory, MiB": lambda outcome: outcome.peak_mib,
    }
    print(f"\n{'medians':<36}" + "".join(f" {name:>10}" for name in outcomes))
    for row, value in rows.items():
        print(f"{row:<36}" + "".join(f" {statistics.median(map(value, found)):10.1f}" for found in outcomes.values()))


def compared(ours: list[Outcome], theirs: list[Outcome], until: str) -> int:
    """Our pivot and our end with each of kubeadm's, from power on. 0 if the control plane stands by itself no later
    than kubeadm's whole cluster."""
    ends = {
        end: statistics.median(outcome.reached(end) for outcome in ours)
        for end in (_PIVOT, until)
        if all(outcome.has_reached(end) for outcome in ours)
    }
    for end, mine in ends.items():
        print(f"\nFalsework's {mine:.1f} s from power on to the end of {end} are")
        for name in cluster.ENDS:
            seconds = statistics.median(outcome.reached(name) for outcome in theirs)
            print(f"  {mine / seconds:.2f} of kubeadm's {seconds:5.1f} s to {name}")
    first = next(iter(ends.values()))
    return 0 if first <= statistics.median(outcome.from_power_on for outcome in theirs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
