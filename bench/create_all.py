"""How long `falsework create all` takes, and how much memory: for the default site, and for one with 500 workers.

Run it in a checkout: `.venv/*/bin/python bench/create_all.py`, or with any Python that has Falsework's packages.
Each site is made in a process of its own, warm (everything imported), into an empty folder; then again, unchanged.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import resource
import tempfile
import time
from ipaddress import IPv4Network
from pathlib import Path

from falsework.assets.catalogue import create
from falsework.site.load import default_site
from falsework.site.model import Role, Site

LIMITS = {"default site": 1.5, "500 workers": 6.0}


def site_with_workers(count: int) -> Site:
    site = default_site()
    lab = IPv4Network("10.0.0.0/16")
    worker = site.workers[0]
    workers = tuple(
        dataclasses.replace(
            worker,
            name=f"worker-{index}",
            role=Role.WORKER,
            address=lab[1024 + index],
            mac=f"52:54:00:ff:{index >> 8:02x}:{index & 255:02x}",
        )
        for index in range(count)
    )
    return dataclasses.replace(site, machines=(site.bootstrap, *site.masters, *workers), compute_replicas=count)


def measure(name: str, results: multiprocessing.Queue[tuple[float, float, int, float]]) -> None:
    site = default_site() if name == "default site" else site_with_workers(500)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "assets"
        started = time.perf_counter()
        files = len(create(site, folder).written)
        first = time.perf_counter() - started
        started = time.perf_counter()
        assert not create(site, folder).written
        again = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((first, again, files, peak))


def main() -> int:
    good = True
    for name, limit in LIMITS.items():
        results: multiprocessing.Queue[tuple[float, float, int, float]] = multiprocessing.Queue()
        process = multiprocessing.Process(target=measure, args=(name, results))
        process.start()
        first, again, files, peak = results.get()
        process.join()
        good = good and first < limit
        print(
            f"{name:<14} {first:6.2f} s (limit {limit} s) for {files} files, {again:5.2f} s when nothing changed, "
            f"peak {peak:.0f} MiB"
        )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
