"""Checks of the host itself: what this process may do, and what the kernel can."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.host import packages
from falsework.lab.journal import Thing
from falsework.machines import host_settings
from falsework.machines.cgroups import Group
from falsework.machines.share import offered_groups
from falsework.process import CommandError, run
from falsework.stages.context import Context
from falsework.stages.findings import Finding, note, ok, problem, warning

HOST_PROGRAMS = ("setpriv", "unshare", "nsenter", "mount", "ip", "nft", "systemd-nspawn", "ssh", "dig", "curl")
"""The last two for people: `falsework shell` promises them."""

TRIAL = "cgroup-trial"
"""Kind of the groups that are made only to see whether they can be; noted, because a kill may leave them."""

_NEEDED_CAPABILITIES = {
    0: "CAP_CHOWN",
    1: "CAP_DAC_OVERRIDE",
    3: "CAP_FOWNER",
    5: "CAP_KILL",
    6: "CAP_SETGID",
    7: "CAP_SETUID",
    8: "CAP_SETPCAP",
    10: "CAP_NET_BIND_SERVICE",
    12: "CAP_NET_ADMIN",
    13: "CAP_NET_RAW",
    18: "CAP_SYS_CHROOT",
    19: "CAP_SYS_PTRACE",
    21: "CAP_SYS_ADMIN",
    27: "CAP_MKNOD",
}
_SYS_RESOURCE = 24

_NEEDED_CONTROLLERS = {"cpu", "cpuset", "memory", "pids"}
"""Machines are limited by them, and so are the pods of their kubelets."""

_TASKS_PER_MACHINE = 1000
_OPEN_FILES_MINIMUM = 4096
_OPEN_FILES_GOOD = 16384


def root(context: Context) -> Iterator[Finding]:
    if context.host.is_root():
        yield ok("root")
    else:
        yield problem("only root can make machines and networks", "run the same command with sudo")


def programs(context: Context) -> Iterator[Finding]:
    try:
        packages.ensure(HOST_PROGRAMS, context.say)
    except FalseworkError as error:
        yield problem(error.what + (f" ({error.cause})" if error.cause else ""), error.fix or "install them")
    else:
        yield ok(f"programs: {', '.join(HOST_PROGRAMS)}")


def capabilities(context: Context) -> Iterator[Finding]:
    held = context.host.capabilities()
    missing = [name for bit, name in _NEEDED_CAPABILITIES.items() if not held >> bit & 1]
    if missing and context.host.is_root():
        yield problem(
            f"root may not do everything here: {', '.join(missing)} missing",
            "leave the container, or have it started with these capabilities (or privileged)",
        )
    if not held >> _SYS_RESOURCE & 1:
        yield note("CAP_SYS_RESOURCE is missing: limits cannot be raised, and need not be")
    if not missing:
        yield ok("capabilities")


def overlay(context: Context) -> Iterator[Finding]:
    """Tried where machines' disks will be: not every file system can carry one."""
    if not context.host.is_root():
        return
    with tempfile.TemporaryDirectory(dir=context.lab.root, prefix="overlay-trial.") as folder:
        script = 'cd "$1"; mkdir lower upper work root; mount -t overlay overlay -o ' + (
            "lowerdir=lower,upperdir=upper,workdir=work root; touch root/file; test -e upper/file"
        )
        try:
            run(("unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "overlay-trial", folder))
        except CommandError as error:
            yield problem(
                f"machines' disks cannot be overlay mounts in {context.lab.root} ({error.finished.last_lines(1)})",
                "set FALSEWORK_STATE to a folder on an ordinary disk (ext4, xfs, btrfs), not on an overlay or on NFS; "
                "if there is none, load the kernel's overlay module",
            )
        else:
            yield ok("overlay mounts")


def network(context: Context) -> Iterator[Finding]:
    """Tried in a namespace without a name, which ends with the trial."""
    if not context.host.is_root():
        return
    script = (
        "ip link add trial0 type bridge; ip link add trial1 type veth peer name trial2; "
        "ip link set trial1 master trial0; ip link set trial0 up; nft add table inet trial"
    )
    try:
        run(("unshare", "--net", "sh", "-ec", script))
    except CommandError as error:
        yield problem(
            f"the lab's network cannot be made ({error.finished.last_lines(1)})",
            "load the kernel's modules bridge, veth and nf_tables; in a container, ask for CAP_NET_ADMIN",
        )
    else:
        yield ok("network namespaces, bridges, veth, nftables")


def cgroups(context: Context) -> Iterator[Finding]:
    """Tried by making a group in every hierarchy."""
    try:
        groups = offered_groups()
    except FalseworkError as error:
        yield problem(error.what, error.fix or "mount them")
        return
    usable: set[str] = set()
    refused: list[str] = []
    trial = f"{context.lab.id}.preflight"
    if context.host.is_root():
        context.journal.creating(TRIAL, trial)
        for group in groups:
            place = group.child(trial).path
            try:
                place.mkdir(exist_ok=True)
                place.rmdir()
                usable |= _controllers(group)
            except OSError as error:
                refused.append(f"{group.path}: {error.strerror}")
        if not any(group.child(trial).path.exists() for group in groups):
            context.journal.removed(Thing(TRIAL, trial))
    else:
        usable = {controller for group in groups for controller in _controllers(group)}
    if missing := sorted(_NEEDED_CONTROLLERS - usable):
        yield problem(
            f"control groups for {', '.join(missing)} cannot be made" + (f" ({'; '.join(refused)})" if refused else ""),
            "start Falsework where its groups may have them: on the host itself, or in a container with its own "
            "writable cgroup tree; the kernel's command line must not disable them",
        )
    else:
        versions = " and ".join(sorted({"v2" if group.unified else "v1" for group in groups}))
        yield ok(f"control groups {versions}: {', '.join(sorted(usable))}")


def _controllers(group: Group) -> set[str]:
    """With version 1 those the hierarchy is made of, with version 2 those that groups below ours can have."""
    if not group.unified:
        return set(group.controllers)
    try:
        return set((group.path / "cgroup.controllers").read_text().split())
    except OSError:
        return set()


def remove_cgroup_trial(name: str) -> None:
    for group in offered_groups():
        place = group.child(name).path
        if place.is_dir():
            place.rmdir()


def inotify(context: Context) -> Iterator[Finding]:
    for name, wanted in host_settings.LIMITS.items():
        limit = context.host.sysctl(name)
        if limit is None or limit >= wanted:
            yield ok(f"{name} = {limit}")
        else:
            yield note(f"{name} is {limit}: it is raised to {wanted} as long as there is a lab")


def limits(context: Context) -> Iterator[Finding]:
    machines = len(context.site.machines) + 1
    tasks = context.host.sysctl("kernel.pid_max")
    if tasks is not None and tasks < machines * _TASKS_PER_MACHINE:
        yield warning(
            f"kernel.pid_max is {tasks}: few processes and threads for {machines} machines",
            "run `sysctl -w kernel.pid_max=4194304`",
        )
    files = context.host.open_files_limit()
    # -1 means that there is no limit.
    if 0 <= files < _OPEN_FILES_MINIMUM:
        yield problem(f"a process may open only {files} files", "run `ulimit -Hn 65536` (or set it in limits.conf)")
    elif 0 <= files < _OPEN_FILES_GOOD:
        yield warning(f"a process may open only {files} files", "run `ulimit -Hn 65536` (or set it in limits.conf)")
    else:
        yield ok(f"limits: {tasks} processes, {files} open files each")


def nfs_client(context: Context) -> Iterator[Finding]:
    """Machines share this kernel, which mounts pods' NFS volumes. The helper's NFS server needs nothing of it."""
    if context.host.can_mount("nfs"):
        yield ok("NFS volumes can be mounted")
    else:
        yield note("this kernel has no NFS client: pods cannot have NFS volumes (docs/storage.md), all else works")


def clock(context: Context) -> Iterator[Finding]:
    from falsework.assets.graph import State
    from falsework.release.payload import load_payload

    now = datetime.fromtimestamp(context.host.now(), UTC)
    made = datetime.fromtimestamp(load_payload().epoch, UTC)
    if now < made:
        yield problem(
            f"the clock says {now:%Y-%m-%d %H:%M} UTC, but this release was made on {made:%Y-%m-%d}",
            "set the clock: certificates would not be valid",
        )
        return
    begins = [record.begins for record in State.load(context.lab.site_folder).assets.values() if record.begins]
    if early := sum(datetime.fromisoformat(begin) > now for begin in begins):
        yield warning(
            f"{early} certificates are not valid yet by this clock ({now:%Y-%m-%d %H:%M} UTC), and will be made anew",
            "check the clock; machines that hold the old ones must be made anew too",
        )
    if not context.host.clock_is_synchronised():
        yield note("nothing keeps the clock synchronised, as far as the kernel knows")
    yield ok(f"clock: {now:%Y-%m-%d %H:%M} UTC")


def mount_options(context: Context) -> Iterator[Finding]:
    """Machines start programs and use devices from their disks."""
    root = context.lab.root
    flags = context.host.mount_flags(root)
    named = {os.ST_RDONLY: "ro", os.ST_NOEXEC: "noexec", os.ST_NODEV: "nodev", os.ST_NOSUID: "nosuid"}
    if wrong := [name for flag, name in named.items() if flags & flag]:
        yield problem(
            f"the file system of {root} is mounted {', '.join(wrong)}, so machines cannot live there",
            "set FALSEWORK_STATE to a folder elsewhere, or mount it without that",
        )
    else:
        yield ok(f"machines can live in {Path(root).parent}")
