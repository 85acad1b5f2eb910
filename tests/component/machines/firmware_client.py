"""A machine's first boot, up to systemd, as its keeper runs it; started in the machine's network namespace.

python firmware_client.py OS_ROOT FOLDER MAC|CONFIG

Prints one JSON object a line: what the console shows, what it is at, and at last the lease or the error. The root it
boots is FOLDER/root while it runs; what was written to it stays in FOLDER/upper.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.machines.firmware import mounts
from falsework.machines.firmware.boot import file_boot, network_boot

ADDRESS = "192.168.126.2/24"


def main(os_root: str, given: str, machine: str) -> None:
    began = time.monotonic()

    def tell(**what: object) -> None:
        print(json.dumps({"at": round(time.monotonic() - began, 3), **what}), flush=True)

    def say(line: str) -> None:
        tell(said=line)

    def doing(line: str) -> None:
        tell(doing=line)

    folder = Path(given)
    for name in ("root", "upper", "work"):
        (folder / name).mkdir(exist_ok=True)
    root = folder / "root"
    mounts.overlay(root, Path(os_root), folder / "upper", folder / "work")
    try:
        if machine.endswith(".ign"):
            file_boot(Path(machine), "eth0", ADDRESS, Path(os_root), root, say, doing)
            result: dict[str, object] = {"booted": {}}
        else:
            result = {"booted": dataclasses.asdict(network_boot("eth0", machine, Path(os_root), root, say, doing))}
    except FalseworkError as error:
        result = {"error": str(error)}
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    mounted = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    tell(**result, cpu=round(sum(each.ru_utime + each.ru_stime for each in used), 3), mounted=len(mounted))


if __name__ == "__main__":
    main(*sys.argv[1:])
