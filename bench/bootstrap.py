"""From power on of the bootstrap machine to an API that answers through the load balancer, and where the time goes.

    ./falsework bench bootstrap [RUNS]

A lab of its own, on this host, removed at the end. The release is built before. Ends with 1 if the limit is missed.
"""

from __future__ import annotations

import json
import statistics
import sys
from datetime import datetime

from throwaway import falsework, throwaway_lab

from falsework.lab.folder import Lab
from falsework.machines.nspawn import Nspawn
from falsework.machines.providers import provider_of
from falsework.site.load import default_site
from falsework.stages.events import read_events

LIMIT = 20.0
NAME = default_site().bootstrap.name
ON_CONSOLE = {
    "lease": "DHCP: ",
    "config": "fetch passed",
    "Ignition": "Ignition: done",
    "systemd": "systemd is up",
}
IN_JOURNAL = {
    "kubelet": ("kubelet", "Started kubelet.service"),
    "etcd": ("bootkube", "Starting cluster-bootstrap..."),
    "API server": ("bootkube", "API server is up"),
}
STEPS = (*ON_CONSOLE, *IN_JOURNAL, "load balancer")


def main(words: list[str]) -> int:
    runs = int(words[0]) if words else 3
    falsework("release", "build")
    results = [one_run() for _ in range(runs)]
    print(f"\n{'seconds since power on':<24}" + "".join(f" {number + 1:>7}" for number in range(runs)))
    for step in STEPS:
        print(f"{step:<24}" + "".join(f" {result[step]:7.2f}" for result in results))
    print(f"{'CPU s of the machine':<24}" + "".join(f" {result['cpu']:7.2f}" for result in results))
    print(f"{'MiB of the machine':<24}" + "".join(f" {result['memory']:7.0f}" for result in results))
    median = statistics.median(result["load balancer"] for result in results)
    print(f"\nAPI behind the load balancer after {median:.2f} s (limit {LIMIT})")
    return 0 if median <= LIMIT else 1


def one_run() -> dict[str, float]:
    with throwaway_lab() as lab:
        falsework("up", "--until", "helper", "--dir", str(lab.site_folder))
        falsework("up", "--until", "temporary-control-plane", "--dir", str(lab.site_folder))
        return measured(lab)


def measured(lab: Lab) -> dict[str, float]:
    machines = provider_of(lab)
    console = machines.console(NAME).read_text().splitlines()
    power_on = moment(console[0])
    found = {
        step: moment(next(line for line in console if phrase in line and "asking" not in line)) - power_on
        for step, phrase in ON_CONSOLE.items()
    }
    for step, (unit, phrase) in IN_JOURNAL.items():
        found[step] = journaled(machines, unit, phrase) - power_on
    balanced = [
        event for event in read_events(lab.events) if event.get("name") == f"{NAME}/balanced" and event["holds"]
    ]
    used = machines.usage(NAME)
    return {
        **found,
        "load balancer": balanced[0]["time"] - power_on,
        "cpu": used.cpu_seconds,
        "memory": used.memory_bytes / 2**20,
    }


def moment(line: str) -> float:
    """Of a line of the console, which starts with date and time."""
    return datetime.strptime(" ".join(line.split()[:2]) + " +0000", "%Y-%m-%d %H:%M:%S.%f %z").timestamp()


def journaled(machines: Nspawn, unit: str, phrase: str) -> float:
    words = ("journalctl", "-b", "-u", unit, "-o", "json", "--no-pager", f"--grep={phrase}")
    first = json.loads(machines.execute(NAME, words).output.splitlines()[0])
    return int(first["__REALTIME_TIMESTAMP"]) / 1e6


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
