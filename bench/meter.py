"""What a lab's machines use while something is measured: looked at ten times a second, in a thread of its own."""

from __future__ import annotations

import bisect
import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines import cgroups, share
from falsework.machines.cgroups import Group

_EVERY = 0.1


@dataclass(frozen=True)
class Sample:
    time: float
    cpu_seconds: float
    """Since the lab was made, of machines that are gone too: the lab's own group remembers."""
    anonymous_bytes: int
    """Without the page cache, which the kernel takes back when it likes."""


class Meter:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.began = time.time()
        self.host_busy = 0.0
        """CPU seconds of everything on the host; known at the end."""
        self._samples = [Sample(self.began, 0.0, 0)]
        self._stopping = threading.Event()
        self._busy_before = host_busy_seconds()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self.host_busy = host_busy_seconds() - self._busy_before

    def _run(self) -> None:
        groups: list[Group] = []
        while not self._stopping.wait(_EVERY):
            # The first machine makes the group.
            groups = groups or share.noted_groups(Journal(self._lab.journal))
            if groups:
                self._samples.append(Sample(time.time(), cgroups.usage(groups).cpu_seconds, anonymous_bytes(groups)))

    def cpu_until(self, moment: float) -> float:
        return cpu_until(self._samples, moment)

    @property
    def peak_anonymous_bytes(self) -> int:
        return max(sample.anonymous_bytes for sample in self._samples)


def cpu_until(samples: Sequence[Sample], moment: float) -> float:
    """Between two samples as if the work had been even."""
    after = bisect.bisect_left(samples, moment, key=lambda sample: sample.time)
    if after == 0:
        return samples[0].cpu_seconds
    if after == len(samples):
        return samples[-1].cpu_seconds
    one, two = samples[after - 1], samples[after]
    share_of_it = (moment - one.time) / (two.time - one.time)
    return one.cpu_seconds + share_of_it * (two.cpu_seconds - one.cpu_seconds)


def anonymous_bytes(groups: Sequence[Group]) -> int:
    for group in groups:
        name = "anon" if group.unified else "total_rss"
        with contextlib.suppress(OSError):
            for line in (group.path / "memory.stat").read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    return 0


def host_busy_seconds() -> float:
    """Of all processors together since the host was started; not what they waited."""
    user, nice, system, _idle, _waiting, interrupts, soft, *_ = (
        Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return sum(map(int, (user, nice, system, interrupts, soft))) / os.sysconf("SC_CLK_TCK")
