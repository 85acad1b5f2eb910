"""Where in the host's control groups a lab has its own: below ours, or in a unit of its own where systemd runs.

systemd takes what it did not make for rubbish, and ends with a login what the login started. So on its hosts the
lab is a service of systemd's, delegated to us.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from falsework.host.packages import SYSTEMD
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal, Thing
from falsework.machines import cgroups
from falsework.machines.cgroups import Group
from falsework.process import CommandError, run

KIND = "cgroup"
UNIT_KIND = "unit"


def offered_groups() -> list[Group]:
    """What has the controllers a lab can have: a unit of systemd's may have all there are, a login has few."""
    return cgroups.top_groups() if SYSTEMD.is_dir() else cgroups.base_groups()


def lab_groups(lab: Lab, journal: Journal) -> list[Group]:
    """The lab's own group in every hierarchy; made when it is not there."""
    base = _unit_groups(lab, journal) if SYSTEMD.is_dir() else cgroups.base_groups()
    noted = noted_groups(journal)
    if noted and all(group.path.is_dir() for group in noted):
        return noted
    wanted = [group.child(lab.id) for group in base]
    journal.creating(KIND, json.dumps([_as_data(group) for group in wanted]))
    return [cgroups.make(group, lab.id) for group in base]


def outliving_logins(lab: Lab, journal: Journal, name: str, words: Sequence[str]) -> tuple[str, ...]:
    """The command, to be run where the end of a login does not reach it: with systemd, in a group of the lab's."""
    if not SYSTEMD.is_dir():
        return tuple(words)
    return cgroups.joined([cgroups.make(group, name) for group in lab_groups(lab, journal)], words)


def noted_groups(journal: Journal) -> list[Group]:
    """Where the lab's groups are, or were before the host was started anew."""
    noted = [thing for thing in journal.standing() if thing.kind == KIND]
    return _groups_in(noted[-1]) if noted else []


def remove_groups(thing: Thing) -> None:
    groups = _groups_in(thing)
    cgroups.kill(groups)
    cgroups.remove(groups)
    for group in groups:
        cgroups.take_back(group.parent)


def remove_unit(thing: Thing) -> None:
    if SYSTEMD.is_dir() and _main_pid(thing.name):
        run(("systemctl", "stop", thing.name))


def _as_data(group: Group) -> list[object]:
    return [str(group.path), sorted(group.controllers), group.unified]


def _groups_in(thing: Thing) -> list[Group]:
    return [Group(Path(path), frozenset(names), unified) for path, names, unified in json.loads(thing.name)]


def _unit_groups(lab: Lab, journal: Journal) -> list[Group]:
    """A service that does nothing but hold the lab's groups."""
    unit = f"{lab.id}.service"
    if not _main_pid(unit):
        journal.creating(UNIT_KIND, unit)
        run(
            (
                *("systemd-run", f"--unit={unit}", f"--description=Falsework lab of {lab.site_folder}", "--collect"),
                # With this type it is in its place, and will not move again, when the command ends.
                *("--service-type=exec", "--property=Delegate=yes"),
                *("--property=TasksMax=infinity", "--property=OOMPolicy=continue"),
                *("sleep", "infinity"),
            )
        )
    return cgroups.base_groups(_main_pid(unit))


def _main_pid(unit: str) -> int:
    try:
        return int(run(("systemctl", "show", "--property=MainPID", "--value", unit)).output.strip() or 0)
    except CommandError:
        return 0
