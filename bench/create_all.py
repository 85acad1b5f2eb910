"""How long `falsework create all` takes, and how much memory: for the default site, and for one with 500 workers.

    ./falsework bench create-all

Each site is read and made in a process of its own, warm (everything imported), into a new folder; then again,
unchanged. Ends with 1 if a limit is missed.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from falsework.assets.catalogue import create
from falsework.site.load import load_site


@dataclass(frozen=True)
class Case:
    name: str
    limit: float
    files: dict[str, str]


@dataclass(frozen=True)
class Result:
    first: float
    again: float
    files: int
    peak_mib: float


CASES = (
    Case("default site", 1.5, {}),
    Case(
        "500 workers",
        6.0,
        {
            "install-config.yaml": """\
apiVersion: v1
baseDomain: falsework.test
metadata:
  name: lab
compute:
- name: worker
  replicas: 500
platform:
  none: {}
""",
            "site.yaml": "network:\n  cidr: 10.0.0.0/16\n",
        },
    ),
)


def measure(case: Case, results: multiprocessing.Queue[Result]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, text in case.files.items():
            (folder / name).write_text(text)
        started = time.perf_counter()
        files = len(create(load_site(folder, routes=tuple), folder).written)
        first = time.perf_counter() - started
        started = time.perf_counter()
        assert not create(load_site(folder, routes=tuple), folder).written
        again = time.perf_counter() - started
    results.put(Result(first, again, files, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def main() -> int:
    good = True
    for case in CASES:
        results: multiprocessing.Queue[Result] = multiprocessing.Queue()
        process = multiprocessing.Process(target=measure, args=(case, results))
        process.start()
        result = results.get()
        process.join()
        good = good and result.first < case.limit
        print(
            f"{case.name:<14} {result.first:5.2f} s (limit {case.limit} s) for {result.files} files, "
            f"{result.again:4.2f} s when nothing changed, peak {result.peak_mib:.0f} MiB"
        )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
