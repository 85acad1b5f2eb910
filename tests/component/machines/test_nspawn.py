"""Namespace machines, with the release's OS image and real systemd, Ignition and systemd-nspawn."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.assets.ignition import File
from falsework.errors import FalseworkError
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines import cgroups, share
from falsework.machines.network import Network, remove_netns
from falsework.machines.nspawn import Nspawn
from falsework.machines.provider import Power, Spec
from falsework.process import CommandError, run
from falsework.release.inventory import Release
from falsework.site.load import default_site

NAME = "helper"
CONFIG = {
    "ignition": {"version": "3.5.0"},
    "storage": {
        "files": [
            {"path": "/etc/hostname", "contents": {"source": "data:,helper.lab.falsework.test"}},
            {"path": "/etc/greeting", "contents": {"source": "data:,hello"}, "mode": 0o640},
        ]
    },
    "systemd": {
        "units": [
            {
                "name": "marker.service",
                "enabled": True,
                "contents": "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
                "ExecStart=/bin/sh -c 'date >>/var/lib/etcd/boots'\n[Install]\nWantedBy=multi-user.target\n",
            }
        ]
    },
}


@pytest.fixture(scope="module")
def lab(beside_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab.of(tmp_path_factory.mktemp("site"), beside_cache / "nspawn-state")
    journal = Journal(lab.journal)
    Network(default_site(), lab, journal).build()
    yield lab
    Nspawn(lab, journal).destroy(NAME)
    for thing in reversed(journal.standing()):
        if thing.kind == share.KIND:
            share.remove_groups(thing)
        elif thing.kind == share.UNIT_KIND:
            share.remove_unit(thing)
        elif thing.kind == "netns":
            remove_netns(thing)
    assert not any(group.path.exists() for group in share.noted_groups(journal))


@pytest.fixture(scope="module")
def machines(lab: Lab) -> Nspawn:
    return Nspawn(lab, Journal(lab.journal))


def spec(lab: Lab) -> Spec:
    return Spec(
        name=NAME,
        hostname=f"{NAME}.lab.falsework.test",
        mac=default_site().helper.mac,
        cpus=2,
        memory_mib=512,
        folders=("/var/lib/containerd", "/var/lib/etcd"),
        binds={"/mnt/site": str(lab.site_folder)},
        ignition=lab.root / "config.ign",
        address="192.168.126.2/24",
    )


@pytest.fixture(scope="module")
def made(machines: Nspawn, lab: Lab, release: Release) -> Nspawn:
    (lab.root / "config.ign").write_text(json.dumps(CONFIG))
    machines.create(spec(lab), release.os_root, release.seed_images)
    return machines


@pytest.fixture
def running(made: Nspawn) -> Nspawn:
    made.start(NAME)
    until(made, Power.RUNNING)
    return made


def until(machines: Nspawn, power: Power, after: float = 0.0) -> None:
    deadline = time.monotonic() + 180
    while (state := machines.state(NAME)).power is not power or state.since < after:
        assert time.monotonic() < deadline, f"{state}\n{machines.console(NAME).read_text()[-3000:]}"
        time.sleep(0.02)


def inside(machines: Nspawn, *words: str) -> str:
    return machines.execute(NAME, words).output.strip()


def test_a_machine_that_is_not_there(machines: Nspawn) -> None:
    assert machines.state("nobody").power is Power.ABSENT
    with pytest.raises(FalseworkError, match="there is no machine nobody"):
        machines.start("nobody")


def test_a_machine_that_is_off(made: Nspawn) -> None:
    assert made.state(NAME).power is Power.OFF
    with pytest.raises(FalseworkError, match="is off") as caught:
        made.execute(NAME, ("true",))
    assert "falsework machine start" in str(caught.value)


def test_its_system_is_up_with_what_ignition_said(running: Nspawn) -> None:
    assert inside(running, "systemctl", "is-system-running") == "running"
    assert inside(running, "systemctl", "is-active", "marker.service") == "active"
    assert inside(running, "cat", "/proc/1/comm") == "systemd"
    assert inside(running, "hostname") == "helper.lab.falsework.test"
    assert inside(running, "stat", "-c", "%a", "/etc/greeting") == "640"


def test_it_has_its_own_network_and_its_folders_are_on_the_disk(running: Nspawn, lab: Lab) -> None:
    links = json.loads(inside(running, "ip", "-json", "address"))
    assert [link["ifname"] for link in links] == ["lo", "eth0"]
    assert links[1]["address"] == default_site().helper.mac
    assert inside(running, "stat", "-f", "-c", "%T", "/var/lib/etcd") != "overlayfs"
    assert (lab.machine(NAME) / "disk" / "var-lib-etcd" / "boots").exists()
    assert inside(running, "ls", "/var/lib/containerd").split() != []
    with pytest.raises(CommandError, match="exit code"):
        inside(running, "touch", "/mnt/site/x")


def test_nothing_of_it_is_among_the_mounts_of_the_host(running: Nspawn, lab: Lab) -> None:
    assert str(lab.root) not in Path("/proc/self/mountinfo").read_text()


def test_its_limits_hold_for_commands_run_in_it_too(running: Nspawn) -> None:
    with pytest.raises(CommandError):
        inside(running, "python3", "-c", "x = bytearray(700 << 20)")
    assert inside(running, "echo", "still here") == "still here"


def test_files_are_read_and_replaced_whole(running: Nspawn) -> None:
    running.write_file(NAME, "/etc/new/file", b"one\n", 0o600)
    running.write_file(NAME, "/etc/new/file", b"two\n", 0o600)
    assert running.read_file(NAME, "/etc/new/file") == b"two\n"
    assert inside(running, "stat", "-c", "%a %U", "/etc/new/file") == "600 root"
    assert inside(running, "ls", "/etc/new") == "file"
    with pytest.raises(FileNotFoundError):
        running.read_file(NAME, "/etc/new/none")


def test_several_files_are_replaced_with_one_command(running: Nspawn) -> None:
    """And belong to the group that their folder gives."""
    inside(running, "install", "-d", "-m", "2750", "-g", "www-data", "/srv/shared")
    files = [File("/srv/shared/some where", b"\0" * 100_000, 0o640), File("/etc/other/empty", b"", 0o600)]
    running.write_files(NAME, files)
    assert all(running.read_file(NAME, file.path) == file.content for file in files)
    assert inside(running, "stat", "-c", "%a %U %G", "/srv/shared/some where") == "640 root www-data"
    assert inside(running, "stat", "-c", "%a %U %G", "/etc/other/empty") == "600 root root"
    assert inside(running, "ls", "-A", "/srv/shared", "/etc/other").count(".new") == 0


def test_the_console_shows_the_boot_with_times(running: Nspawn) -> None:
    lines = running.console(NAME).read_text().splitlines()
    assert any(line.endswith("power on") for line in lines)
    assert any("Ignition" in line for line in lines)
    # The record of it is a unit that systemd runs beside saying so: its line comes before or after.
    shown = [line for line in lines if "systemd-update-utmp-runlev" not in line]
    assert shown[-1].endswith("systemd is up")
    times = [float(line.split()[2]) for line in lines]
    assert times == sorted(times)


def test_starting_it_again_changes_nothing(running: Nspawn, lab: Lab) -> None:
    before = running.init(NAME)
    running.start(NAME)
    assert running.init(NAME) == before


def test_it_outlives_the_process_that_started_it(made: Nspawn, lab: Lab) -> None:
    made.kill(NAME)
    began = time.time()
    program = """
import os, signal, sys
from pathlib import Path
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines.nspawn import Nspawn
lab = Lab.of(Path(sys.argv[1]), Path(sys.argv[2]))
Nspawn(lab, Journal(lab.journal)).start(sys.argv[3])
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        (sys.executable, "-c", program, lab.site_folder, lab.root.parent, NAME), start_new_session=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    assert made.state(NAME).since > began
    until(made, Power.RUNNING)


def test_a_reboot_starts_it_again_from_its_disk(running: Nspawn, lab: Lab) -> None:
    groups = [group.child(NAME, cgroups.MACHINE, "pods") for group in share.noted_groups(Journal(lab.journal))]
    for group in groups:
        group.path.mkdir()
    boots = int(inside(running, "sh", "-c", "wc -l </var/lib/etcd/boots"))
    running.write_file(NAME, "/etc/kept", b"kept")
    began = time.time()
    # The machine may be gone before the command has ended.
    with contextlib.suppress(CommandError):
        inside(running, "systemctl", "reboot")
    until(running, Power.RUNNING, after=began)
    assert inside(running, "cat", "/etc/kept") == "kept"
    assert int(inside(running, "sh", "-c", "wc -l </var/lib/etcd/boots")) == boots + 1
    assert "booting from disk" in running.console(NAME).read_text()
    assert not any(group.path.exists() for group in groups)


def test_stopping_shuts_it_down(running: Nspawn) -> None:
    running.stop(NAME)
    assert running.state(NAME).power is Power.OFF
    assert running.state(NAME).doing == "shut down"
    assert "power off" in running.console(NAME).read_text().splitlines()[-1]
    running.stop(NAME)


def test_killing_leaves_no_process_and_no_group(running: Nspawn, lab: Lab) -> None:
    groups = [group.child(NAME) for group in share.noted_groups(Journal(lab.journal))]
    assert cgroups.processes(groups)
    running.kill(NAME)
    assert not any(group.path.exists() for group in groups)
    assert running.state(NAME) == running.state(NAME)
    assert running.state(NAME).doing == "lost its power"
    running.kill(NAME)


@pytest.mark.parametrize("whom", ["keeper", "nspawn", "init"])
def test_whichever_of_its_processes_is_killed_it_is_off_and_starts_again(running: Nspawn, whom: str) -> None:
    init = running.init(NAME)
    nspawn = int(run(("ps", "-o", "ppid=", "-p", str(init))).output)
    pids = {"init": init, "nspawn": nspawn, "keeper": int(run(("ps", "-o", "ppid=", "-p", str(nspawn))).output)}
    os.kill(pids[whom], signal.SIGKILL)
    until(running, Power.OFF)
    running.start(NAME)
    until(running, Power.RUNNING)


def test_killed_in_the_middle_of_its_first_boot_it_starts_over(made: Nspawn, lab: Lab, release: Release) -> None:
    made.destroy(NAME)
    made.create(spec(lab), release.os_root)
    for delay in (0.05, 0.2, 0.4):
        made.start(NAME)
        time.sleep(delay)
        made.kill(NAME)
    made.start(NAME)
    until(made, Power.RUNNING)
    assert inside(made, "cat", "/etc/greeting") == "hello"
    assert inside(made, "systemctl", "is-active", "marker.service") == "active"


def test_destroying_leaves_nothing(running: Nspawn, lab: Lab) -> None:
    running.destroy(NAME)
    assert not lab.machine(NAME).exists()
    assert running.state(NAME).power is Power.ABSENT
    running.destroy(NAME)
