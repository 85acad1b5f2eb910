"""Checks of what the machines will use of the host: disk, memory, processors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from falsework.machines import nspawn
from falsework.site.model import Helper, Machine, Role
from falsework.site.records import everyone
from falsework.stages.context import Context
from falsework.stages.findings import Finding, ok, problem, warning

GIB = 1 << 30

# What a machine really uses, not what it may use. Shared out by role from what was measured of kubeadm's cluster of the
# same shape: five machines with a highly available control plane peaked at 1.4 GiB; a machine alone took 52 MiB.
_REAL_MEMORY_MIB = {Role.BOOTSTRAP: 400, Role.MASTER: 400, Role.WORKER: 128}
_REAL_MEMORY_HELPER_MIB = 128

_DISK_PER_MACHINE = GIB // 2
"""An estimate: logs, etcd, what containers write. The OS and the images are shared by all machines."""
_DISK_RELEASE = 15 * GIB
"""While it is built; see release.cache.DISK_NEED."""
_CPUS_GOOD = 2


def memory(context: Context) -> Iterator[Finding]:
    """Only of machines that are yet to be made: what the others use is gone from what is available."""
    new = _to_be_made(context)
    real = sum(_real_memory(machine) for machine in new)
    allowed = sum(machine.memory_mib for machine in new)
    available = context.host.memory_available_mib()
    if available < real:
        yield problem(
            f"{available} MiB of memory are available, {len(new)} machines use at least {real} MiB",
            "stop other programs, or have fewer machines in site.yaml",
        )
    elif available < allowed:
        yield warning(
            f"{len(new)} machines may use {allowed} MiB of memory together, {available} MiB are available",
            "fine as long as they do not all use it; smaller sizes in site.yaml make sure",
        )
    else:
        yield ok(f"memory: {available} MiB available, machines may use {allowed} MiB")


def cpus(context: Context) -> Iterator[Finding]:
    count = context.host.cpus()
    if count < _CPUS_GOOD:
        yield warning(f"there is {count} processor", "it works, but slowly: the more processors, the better")
    else:
        yield ok(f"{count} processors")


def disk(context: Context) -> Iterator[Finding]:
    state, cache, host = context.lab.root, context.cache.root, context.host
    machines = len(_to_be_made(context)) * _DISK_PER_MACHINE
    release = 0 if context.find_release() else _DISK_RELEASE
    shared = host.device(state) == host.device(cache)
    needs: list[tuple[Path, int]] = [(state, machines + release)] if shared else [(state, machines), (cache, release)]
    for path, need in needs:
        free = host.free_bytes(path)
        if free < need:
            yield problem(
                f"{free / GIB:.1f} GiB are free on the disk of {path}, {need / GIB:.1f} GiB are needed",
                f"free some, or set {'FALSEWORK_CACHE' if path == cache else 'FALSEWORK_STATE'} "
                "to a folder on a larger disk",
            )
        else:
            yield ok(f"disk of {path}: {free / GIB:.1f} GiB free, {need / GIB:.1f} GiB needed")
    if not shared:
        yield problem(
            f"{state.parent} and {cache} are on different file systems, so machines cannot share the release's files",
            f"set FALSEWORK_STATE to a folder on the file system of {cache}, or FALSEWORK_CACHE to one on the other",
        )


def _to_be_made(context: Context) -> list[Machine | Helper]:
    made = {thing.name for thing in context.journal.standing() if thing.kind == nspawn.KIND}
    return [machine for machine in everyone(context.site) if machine.name not in made]


def _real_memory(machine: Machine | Helper) -> int:
    return _REAL_MEMORY_HELPER_MIB if isinstance(machine, Helper) else _REAL_MEMORY_MIB[machine.role]
