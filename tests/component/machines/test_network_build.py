"""The lab's network, for real: who reaches whom, what a re-run repairs, what is left afterwards."""

from __future__ import annotations

import dataclasses
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_network import TestLab, host_state, leftovers, test_lab

from falsework.lab.folder import NETWORK
from falsework.machines import network
from falsework.machines.namespaces import FOLDER
from falsework.machines.network import remove_netns
from kills import kills

BUILDER = """
import sys
from pathlib import Path
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines.network import Network
from falsework.site.load import default_site
lab = Lab.of(Path(sys.argv[1]), Path(sys.argv[2]))
print("ready", flush=True)
Network(default_site(), lab, Journal(lab.journal)).build()
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[TestLab]:
    with test_lab(tmp_path) as made:
        yield made


def test_machines_reach_each_other_and_the_gateway(lab: TestLab) -> None:
    before = host_state()
    started, used = time.monotonic(), cpu_seconds()
    lab.network.build()
    seconds = time.monotonic() - started
    print(f"\n{len(lab.site.machines) + 2} namespaces in {seconds:.3f} s, {cpu_seconds() - used:.3f} CPU s")
    assert lab.network.plan() == []
    first, second = lab.site.masters[0], lab.site.workers[0]
    lab.give_addresses(lab.site.helper, first, second)
    assert lab.answers(first.name, second.address)
    assert lab.answers(first.name, lab.site.helper.address)
    assert lab.answers(first.name, lab.site.lab.gateway)
    assert lab.answers(NETWORK, second.address)
    assert first.mac in lab.run(second.name, "ip", "neighbour")
    ports = lab.run(NETWORK, "ip", "-o", "link", "show", "master", lab.site.lab.name)
    assert network.port_of(first) in ports
    assert "mtu 1500" in ports
    assert "inet6" not in lab.run(NETWORK, "ip", "-o", "-6", "address", "show", "dev", lab.site.lab.name)
    lab.remove()
    assert leftovers(lab.lab) == []
    assert host_state() == before


def cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def test_a_dry_run_says_what_a_run_does_and_does_nothing(lab: TestLab) -> None:
    planned = lab.network.plan()
    assert leftovers(lab.lab) == []
    assert not lab.lab.root.exists()
    assert lab.network.build() == planned
    assert lab.network.build() == []


def test_two_labs_with_the_same_addresses_do_not_see_each_other(lab: TestLab, tmp_path: Path) -> None:
    with test_lab(tmp_path / "other") as other:
        lab.network.build()
        other.network.build()
        machine = lab.site.masters[0]
        for each in (lab, other):
            each.give_addresses(each.site.helper)
        lab.give_addresses(machine)
        assert lab.answers(lab.site.helper.name, machine.address)
        assert not other.answers(other.site.helper.name, machine.address)
        other.remove()
        assert lab.answers(lab.site.helper.name, machine.address)


def test_a_lost_link_is_put_back(lab: TestLab) -> None:
    lab.network.build()
    machine = lab.site.masters[0]
    lab.run(machine.name, "ip", "link", "delete", "eth0")
    assert lab.network.build() == [f"cable of {machine.name} ({machine.mac})"]
    lab.give_addresses(lab.site.helper, machine)
    assert lab.answers(machine.name, lab.site.helper.address)


def test_what_was_taken_down_is_brought_up(lab: TestLab) -> None:
    lab.network.build()
    machine = lab.site.masters[0]
    lab.give_addresses(machine)
    lab.run(NETWORK, "ip", "link", "set", network.port_of(machine), "nomaster")
    lab.run(NETWORK, "ip", "address", "flush", "dev", lab.site.lab.name)
    lab.run(machine.name, "ip", "link", "set", "lo", "down")
    assert len(lab.network.build()) == 3
    assert lab.answers(machine.name, lab.site.lab.gateway)
    assert lab.network.build() == []


@pytest.mark.parametrize("name", ["master-0", NETWORK])
def test_a_deleted_namespace_is_made_again(lab: TestLab, name: str) -> None:
    lab.network.build()
    subprocess.run(["ip", "netns", "delete", lab.lab.netns(name)], check=True)
    lab.network.build()
    lab.give_addresses(lab.site.helper, lab.site.masters[0])
    assert lab.answers("master-0", lab.site.helper.address)
    assert lab.network.plan() == []


def test_the_network_comes_back_while_somebody_still_is_in_the_old_one(lab: TestLab, tmp_path: Path) -> None:
    lab.network.build()
    with lab.daemon(NETWORK, "sleep", "infinity", log=tmp_path / "log") as child:
        while Path(f"/proc/{child.pid}/ns/net").stat().st_ino != lab.lab.netns_path(NETWORK).stat().st_ino:
            time.sleep(0.01)
        subprocess.run(["ip", "netns", "delete", lab.lab.netns(NETWORK)], check=True)
        lab.network.build()
        lab.give_addresses(lab.site.helper, lab.site.masters[0])
        assert lab.answers("master-0", lab.site.helper.address)


def test_a_changed_site_adds_its_machines_and_tells_of_those_it_lost(lab: TestLab) -> None:
    full = lab.site
    smaller = dataclasses.replace(lab, site=dataclasses.replace(full, machines=full.machines[:-1]))
    gone = full.machines[-1].name
    smaller.network.build()
    assert smaller.network.surplus() == []
    assert any(gone in what for what in lab.network.build())
    assert smaller.network.surplus() == [gone]
    renamed = dataclasses.replace(lab, site=dataclasses.replace(full, lab=dataclasses.replace(full.lab, name="other")))
    renamed.network.build()
    links = renamed.run(NETWORK, "ip", "-o", "link")
    assert ": other: " in links
    assert f": {full.lab.name}: " not in links
    renamed.give_addresses(full.helper)
    assert renamed.answers(full.helper.name, full.lab.gateway)


def test_a_name_without_a_namespace_is_made_good(lab: TestLab) -> None:
    """What a kill in the middle of `ip netns add` leaves."""
    lab.network.build()
    path = lab.lab.netns_path("master-1")
    subprocess.run(["umount", path], check=True)
    assert path.exists()
    lab.network.build()
    assert lab.network.plan() == []
    thing = next(thing for thing in lab.journal.standing() if thing.name == path.name)
    subprocess.run(["umount", path], check=True)
    remove_netns(thing)
    remove_netns(thing)
    assert not path.exists()


@pytest.mark.parametrize("goes_on", [True, False] * kills(2))
def test_killed_at_any_moment_a_rerun_completes_and_removal_leaves_nothing(lab: TestLab, goes_on: bool) -> None:
    names = sorted(path.name for path in FOLDER.glob("*"))
    mounts = Path("/proc/self/mountinfo").read_text().count(lab.lab.id)
    words = [sys.executable, "-c", BUILDER, str(lab.lab.site_folder), str(lab.lab.root.parent)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as builder:
        assert builder.stdout is not None
        builder.stdout.readline()
        # A real builder is done after two tenths of a second.
        time.sleep(random.uniform(0.0, 0.2))  # noqa: S311 - no secret
        builder.kill()
    noted = {thing.name for thing in lab.journal.standing()}
    made = {path.name for path in FOLDER.glob(f"{lab.lab.id}*")}
    assert made <= noted, "nothing is there that is not in the journal"
    if goes_on:
        lab.network.build()
        assert lab.network.plan() == []
    lab.remove()
    assert sorted(path.name for path in FOLDER.glob("*") if path.name in names) == names
    assert leftovers(lab.lab) == []
    assert Path("/proc/self/mountinfo").read_text().count(lab.lab.id) == mounts
