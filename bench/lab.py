"""How long the helper takes, and six machines that boot over the network at once; CPU seconds and memory of each.

    ./falsework bench lab

A lab of its own, on this host, removed at the end. The Machine Config Server runs in the first master's network,
is up before the machines are, and serves workers too. Ends with 1 if a limit is missed.
"""

from __future__ import annotations

import contextlib
import sys
import time
from datetime import datetime
from pathlib import Path

from throwaway import falsework, throwaway_lab

from falsework.assets.keys_in_folder import SSH_KEY
from falsework.checks.answers import Asker
from falsework.lab.folder import Lab
from falsework.machines.nspawn import Nspawn
from falsework.machines.provider import Power
from falsework.machines.providers import provider_of
from falsework.site import ports
from falsework.site.load import default_site
from falsework.site.model import Site
from falsework.stages.events import read_events

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from mcs_process import config_server

HELPER_LIMIT, MACHINES_LIMIT, ALONE_LIMIT = 3.0, 8.0, 2.0
KUBELET_HEALTH = 10248


def main() -> int:
    with throwaway_lab() as lab:
        return measure(lab, default_site())


def measure(lab: Lab, site: Site) -> int:
    falsework("up", "--until", "network", "--dir", str(lab.site_folder))
    falsework("up", "--until", "helper", "--dir", str(lab.site_folder))
    assert (lab.site_folder / SSH_KEY).exists()
    stages = {
        event["stage"]: event
        for event in read_events(lab.events)
        if event.get("state") == "finished" and "stage" in event
    }
    helper = stages["helper"]["seconds"]
    machines = provider_of(lab)
    names = [machine.name for machine in site.machines]
    # Where a master's will be: the load balancer asks that one first, and the bootstrap's own would refuse workers.
    around = ("nsenter", f"--net={lab.netns_path(site.masters[0].name)}", "--")
    pools = ("master", "worker")
    port = ports.MACHINE_CONFIG_SERVER
    with config_server(site, lab.site_folder, "0.0.0.0", port, around=around, pools=pools):
        alone = alone_seconds(lab, site, machines)
        began = time.monotonic()
        falsework("machine", "start", "--all", "--no-wait", "--dir", str(lab.site_folder))
        switched = time.monotonic() - began
        wait(machines, names)
        booted = time.monotonic() - began
    print(f"\n{'machine':<12} {'config':>8} {'applied':>8} {'up':>8} {'CPU s':>8} {'MiB':>6}    seconds since power on")
    for name in [site.helper.name, *names]:
        steps, used = boot_steps(machines.console(name)), machines.usage(name)
        cells = "".join(f" {steps.get(step, float('nan')):8.2f}" for step in ("config", "applied", "up"))
        print(f"{name:<12}{cells} {used.cpu_seconds:8.2f} {used.memory_bytes >> 20:6}")
    total = sum(machines.usage(name).cpu_seconds for name in names)
    print(f"\nhelper ready            {helper:6.2f} s  (limit {HELPER_LIMIT})")
    print(f"six machines booted     {booted:6.2f} s  (limit {MACHINES_LIMIT}), {total:.1f} CPU s")
    print(f"  switched on after     {switched:6.2f} s  (made, and their images linked)")
    print(f"one machine alone       {alone:6.2f} s  (limit {ALONE_LIMIT}), from its config to a healthy kubelet")
    return 0 if helper < HELPER_LIMIT and booted < MACHINES_LIMIT and alone < ALONE_LIMIT else 1


def wait(machines: Nspawn, names: list[str]) -> None:
    while waiting := [name for name in names if machines.state(name).power is not Power.RUNNING]:
        off = [name for name in waiting if machines.state(name).power is Power.OFF]
        assert not off, f"{off}: {machines.state(off[0])}"
        time.sleep(0.02)


def alone_seconds(lab: Lab, site: Site, machines: Nspawn) -> float:
    """From the config being there to systemd up and a healthy kubelet; the machine is removed again."""
    name = site.bootstrap.name
    falsework("machine", "start", name, "--no-wait", "--dir", str(lab.site_folder))
    asker = Asker(lab.netns_path(name))
    wait(machines, [name])
    while True:
        with contextlib.suppress(OSError):
            if asker.status("127.0.0.1", KUBELET_HEALTH, "/healthz") == 200:
                break
        time.sleep(0.01)
    healthy = time.time()
    config = next(line for line in machines.console(name).read_text().splitlines() if "fetch passed" in line)
    served = datetime.strptime(" ".join(config.split()[:2]) + " +0000", "%Y-%m-%d %H:%M:%S.%f %z").timestamp()
    machines.destroy(name)
    return healthy - served


def boot_steps(console: Path) -> dict[str, float]:
    """Seconds since power on at which the config was there, applied, and the system up."""
    steps: dict[str, float] = {}
    for line in console.read_text().splitlines():
        seconds = float(line.split()[2])
        if "fetch passed" in line:
            steps["config"] = seconds
        elif "Ignition: done" in line:
            steps["applied"] = seconds
        elif line.endswith("systemd is up"):
            steps["up"] = seconds
    return steps


if __name__ == "__main__":
    sys.exit(main())
