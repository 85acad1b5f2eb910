"""Removes a lab: exactly what its journal names, the last made first, and then its folder.

May be killed and run again: what is gone is struck out as it goes, and every remover is content with what is gone.
Needs no site that can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.files import remove_tree
from falsework.lab import marker
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal, Thing
from falsework.machines import host_settings, nat, netns_folder, network, nspawn, share
from falsework.machines.providers import provider_of
from falsework.stages import check_host

FOLDER = "folder"

Remover = Callable[[Lab, Thing], None]
"""Removes a thing that may be gone already, wholly or in part. FalseworkError or OSError if it cannot."""


def remove_folder(_lab: Lab, thing: Thing) -> None:
    _remove_unmounted(Path(thing.name))


def _remove_cgroup_trial(_lab: Lab, thing: Thing) -> None:
    check_host.remove_cgroup_trial(thing.name)


def _remove_machine(lab: Lab, thing: Thing) -> None:
    provider_of(lab).destroy(thing.name)


REMOVERS: Mapping[str, Remover] = {
    FOLDER: remove_folder,
    check_host.TRIAL: _remove_cgroup_trial,
    host_settings.KIND: host_settings.restore,
    nat.KIND: lambda _, thing: nat.end_process(thing),
    netns_folder.KIND: lambda _, thing: netns_folder.remove(thing),
    network.KIND: lambda _, thing: network.remove_netns(thing),
    nspawn.KIND: _remove_machine,
    share.KIND: lambda _, thing: share.remove_groups(thing),
    share.UNIT_KIND: lambda _, thing: share.remove_unit(thing),
}
"""Kind of thing in the journal → how it is removed."""


@dataclass
class Removed:
    things: list[Thing] = field(default_factory=list)
    folder: bool = False

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for thing in self.things:
            counts[thing.kind] = counts.get(thing.kind, 0) + 1
        parts = [f"{count} × {kind}" for kind, count in counts.items()]
        if self.folder:
            parts.append("the lab's folder")
        return ", ".join(parts) or "nothing"


class NotAllRemovedError(FalseworkError):
    def __init__(self, lab: Lab, failures: list[tuple[Thing, str]]) -> None:
        self.failures = failures
        what = "; ".join(f"{thing.kind} {thing.name}: {why}" for thing, why in failures)
        super().__init__(
            f"not all of the lab could be removed: {what}",
            fix=f"mend that and run `falsework destroy --dir {lab.site_folder}` again; the rest is gone already",
        )


def standing(lab: Lab) -> list[Thing]:
    """What `destroy` would remove besides the lab's folder, in its order."""
    return Journal(lab.journal).standing()[::-1]


def destroy(lab: Lab, report: Callable[[str], None], removers: Mapping[str, Remover] = REMOVERS) -> Removed:
    """The caller holds the lab's lock. What cannot be removed does not keep the rest from going."""
    journal = Journal(lab.journal)
    removed = Removed()
    failures: list[tuple[Thing, str]] = []
    for thing in standing(lab):
        if why := _remove(lab, thing, removers):
            failures.append((thing, why))
            report(f"{thing.kind} {thing.name}: {why}")
        else:
            journal.removed(thing)
            removed.things.append(thing)
    if failures:
        raise NotAllRemovedError(lab, failures)
    if lab.root.is_dir():
        marker.unmark(lab)
        _remove_unmounted(lab.root)
        removed.folder = True
    lab.lock.unlink(missing_ok=True)
    return removed


def _remove(lab: Lab, thing: Thing, removers: Mapping[str, Remover]) -> str | None:
    """None if it is gone, else why not."""
    remover = removers.get(thing.kind)
    if remover is None:
        return "this Falsework does not know how to remove that; a newer one made it"
    try:
        remover(lab, thing)
    except FalseworkError as error:
        return error.one_line
    except OSError as error:
        return str(error)
    return None


def _remove_unmounted(folder: Path) -> None:
    """What is mounted below a folder belongs to somebody else, and must not be removed with it."""
    if mounted := _mounts_below(folder):
        raise FalseworkError(
            f"{mounted[0]} is a mount point below a folder that is to be removed",
            cause="somebody mounted it, or a machine is still running",
            fix=f"run `umount {mounted[0]}`, then the same command again",
        )
    remove_tree(folder)


def _mounts_below(folder: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> list[Path]:
    points = (_unescaped(line.split()[4]) for line in mountinfo.read_text().splitlines())
    inside = folder.resolve()
    return [point for point in map(Path, points) if point.is_relative_to(inside)]


def _unescaped(word: str) -> str:
    """The kernel writes blanks in paths as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), word)
