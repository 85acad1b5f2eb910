"""What a host looks like, as far as a lab could leave traces on it; taken before and after, and compared.

before = snapshot()
…
assert difference(before, snapshot()) == []
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from falsework.lab.folder import Lab
from falsework.machines.cgroups import base_groups

_LAB_ID = re.compile(r"\bfw-[0-9a-f]{8}\b")

# What the kernel itself changes all the time, or what tells about the moment and not about a setting.
_UNSTABLE = (
    "kernel/random/",
    "kernel/ns_last_pid",
    "kernel/pty/nr",
    "kernel/perf_event_max_sample_rate",
    "kernel/perf_cpu_time_max_percent",
    "kernel/sched_domain/",
    "kernel/keys/",
    "kernel/hung_task_detect_count",
    "kernel/hung_task_warnings",
    "net/netfilter/nf_conntrack_count",
    "net/netfilter/nf_conntrack_buckets",
    "net/ipv4/route/flush",
    "net/ipv6/route/flush",
    "vm/compact_memory",
    "vm/drop_caches",
    "vm/stat_refresh",
)


@dataclass(frozen=True)
class Snapshot:
    """Each is a set of lines a person can read."""

    namespaces: frozenset[str]
    mounts: frozenset[str]
    cgroups: frozenset[str]
    links: frozenset[str]
    processes: frozenset[str]
    sysctls: frozenset[str]
    state: frozenset[str]
    temporary: frozenset[str]


def snapshot(lab: Lab, marks: Iterable[str] = (), temporary: Path | None = None) -> Snapshot:
    """What counts: of processes, those with the lab's id or one of the `marks` in their command line; of temporary
    files, those in `temporary`, the TMPDIR of the lab's programs alone. In the common one no name tells whose it is.

    What bears the name of another lab is left out: somebody else may be at work on the same host.
    """

    def ours(lines: frozenset[str]) -> frozenset[str]:
        return frozenset(line for line in lines if set(_LAB_ID.findall(line)) <= {lab.id})

    return Snapshot(
        namespaces=ours(_namespaces()),
        mounts=ours(_mounts()),
        cgroups=ours(_cgroups()),
        links=_links(),
        processes=ours(_processes((lab.id, *marks))),
        sysctls=_sysctls(),
        state=ours(_files_below(lab.root.parent)),
        temporary=_files_below(temporary) if temporary else frozenset(),
    )


def difference(before: Snapshot, after: Snapshot) -> list[str]:
    """One line for everything that came or went; none if the host is as it was."""
    lines = []
    for field in fields(Snapshot):
        old, new = getattr(before, field.name), getattr(after, field.name)
        lines += [f"{field.name}: new: {line}" for line in sorted(new - old)]
        lines += [f"{field.name}: gone: {line}" for line in sorted(old - new)]
    return lines


def _namespaces() -> frozenset[str]:
    folder = Path("/run/netns")
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


def _mounts() -> frozenset[str]:
    """Without their numbers, which the kernel gives anew."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return frozenset(" ".join(line.split()[3:6]) + line[line.index(" - ") :] for line in lines)


def _cgroups() -> frozenset[str]:
    """Every group below our own, in every hierarchy; those beside us are others' business."""
    return frozenset(folder for group in base_groups() for folder, _, _ in os.walk(group.path))


def _links() -> frozenset[str]:
    shown = subprocess.run(["ip", "-json", "link"], capture_output=True, check=True).stdout
    return frozenset(f"{link['ifname']} {link['link_type']} {link.get('address')}" for link in json.loads(shown))


def _processes(marks: tuple[str, ...]) -> frozenset[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if any(mark in words for mark in marks) and int(path.parent.name) != os.getpid():
                found.append(f"{path.parent.name} {words}")
    return frozenset(found)


def _sysctls() -> frozenset[str]:
    top = Path("/proc/sys")
    found = []
    for room in ("kernel", "vm", "net", "fs/inotify"):
        for folder, _, names in os.walk(top / room):
            for name in names:
                path = Path(folder, name)
                setting = str(path.relative_to(top))
                if setting.startswith(_UNSTABLE):
                    continue
                # Some are write-only, some need a capability we lack.
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    found.append(f"{setting.replace('/', '.')} = {path.read_text().strip()}")
    return frozenset(found)


def _files_below(root: Path) -> frozenset[str]:
    return frozenset(str(path.relative_to(root)) for path in root.rglob("*"))
