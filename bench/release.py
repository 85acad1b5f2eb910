"""What the release costs: from empty caches, again with warm ones, verified, and given to five machines.

    ./falsework bench release [FOLDER]

FOLDER (default: a new one beside the real cache) takes the caches, 15 GB, and is removed in the end. Ends with 1 if a
limit is missed.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from falsework.progress import Progress
from falsework.release.build import build_release
from falsework.release.cache import Cache, default_root
from falsework.release.payload import load_payload

FALSEWORK = Path(__file__).parents[1] / "falsework"
MACHINES = 5
LIMITS = {"build, empty caches": 900.0, "build, warm": 2.0}


def main() -> int:
    parent = Path(sys.argv[1]) if len(sys.argv) > 1 else default_root().parent
    folder = Path(tempfile.mkdtemp(dir=parent, prefix="falsework-bench-"))
    os.environ["FALSEWORK_CACHE"] = str(folder / "cache")
    try:
        rows = [
            measured("build, empty caches", lambda: falsework("build")),
            measured("build, warm", lambda: falsework("build")),
            measured("verify", lambda: falsework("verify")),
            measured(f"image stores of {MACHINES} machines", lambda: seed(folder)),
        ]
        falsework("prune")
        used = subprocess.run(("du", "-sm", str(folder)), capture_output=True, text=True, check=True).stdout.split()[0]
    finally:
        shutil.rmtree(folder)
    print(f"{'':<32} {'wall s':>8} {'CPU s':>8}")
    for name, wall, cpu in rows:
        print(f"{name:<32} {wall:8.2f} {cpu:8.1f}")
    print(f"on disk after pruning, the machines' stores included: {used} MB")
    missed = [name for name, wall, _ in rows if wall > LIMITS.get(name, wall)]
    for name in missed:
        print(f"over the limit of {LIMITS[name]:.0f} s: {name}")
    return 1 if missed else 0


def measured(name: str, action: Callable[[], None]) -> tuple[str, float, float]:
    before, started = cpu_seconds(), time.monotonic()
    action()
    return name, time.monotonic() - started, cpu_seconds() - before


def cpu_seconds() -> float:
    """Our own and our finished children's."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def falsework(action: str) -> None:
    subprocess.run((str(FALSEWORK), "release", action), check=True)


def seed(folder: Path) -> None:
    with Progress() as progress:
        release = build_release(load_payload(), Cache(default_root(), progress.say), progress)
    for number in range(MACHINES):
        release.seed_images(folder / "machines" / str(number))


if __name__ == "__main__":
    sys.exit(main())
