"""A lab's life on a host with cgroup v2, from its first machine to nothing left; with systemd's part where it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.host.packages import SYSTEMD
from falsework.lab.folder import NETWORK, Lab
from falsework.lab.journal import Journal
from falsework.machines import cgroups, nat, share
from falsework.machines.network import Network
from falsework.machines.nspawn import Nspawn
from falsework.machines.provider import Power, Spec
from falsework.process import run
from falsework.release.inventory import Release
from falsework.site.load import default_site
from falsework.stages.destroy import destroy

SITE = Path("/opt/falsework/site")
NAME = "bootstrap"
FOLDERS = ("/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet")
CONTROLLERS = {"cpu", "cpuset", "io", "memory", "pids"}
ROOT = Path("/sys/fs/cgroup")
OPEN = """
import sys
from dataclasses import replace
from pathlib import Path
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines.network import Network
from falsework.machines.nspawn import Nspawn
from falsework.site.load import default_site
lab = Lab.of(Path(sys.argv[1]), Path(sys.argv[2]))
journal = Journal(lab.journal)
site = default_site()
"""
START = f"{OPEN}Nspawn(lab, journal).start('{NAME}')"
OPEN_TO_THE_WORLD = f"{OPEN}Network(replace(site, lab=replace(site.lab, nat=True)), lab, journal).build()"
IN_A_LOGIN = ("systemd-run", "--quiet", "--scope", "--unit=login", "--slice=user.slice")
with_systemd = pytest.mark.skipif(not SYSTEMD.is_dir(), reason="systemd is not the first process")


@pytest.fixture(scope="module")
def lab(beside_cache: Path, release: Release) -> Iterator[Lab]:
    """With one machine, the bootstrap as it is made for a cluster, switched off."""
    lab = Lab.of(SITE, beside_cache / "state")
    journal = Journal(lab.journal)
    before = _leavings()
    Network(default_site(), lab, journal).build()
    machine = default_site().bootstrap
    spec = Spec(
        name=NAME,
        hostname=f"{NAME}.lab.falsework.test",
        mac=machine.mac,
        cpus=1,
        memory_mib=1536,
        folders=FOLDERS,
        ignition=SITE / "bootstrap.ign",
        address=f"{machine.address}/24",
    )
    Nspawn(lab, journal).create(spec, release.os_root, release.seed_images)
    yield lab
    destroy(lab, print)
    assert _leavings() == before


def _leavings() -> dict[str, object]:
    """What a lab could leave on its host."""
    units = (
        run(("systemctl", "list-units", "--all", "--plain", "--no-legend", "fw-*")).output if SYSTEMD.is_dir() else ""
    )
    programs = run(("ps", "-eo", "args=")).output.splitlines()
    return {
        "units": units,
        "groups": {path for path, _, _ in os.walk(ROOT) if "falsework" in path or "fw-" in path},
        "processes": [line for line in programs if re.search("keeper|nspawn|sleep|slirp", line)],
        "namespaces": run(("ip", "netns", "list")).output,
        "mounts": [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "fw-" in line],
    }


@pytest.fixture(scope="module")
def machines(lab: Lab) -> Nspawn:
    return Nspawn(lab, Journal(lab.journal))


def until(true: Callable[[], object], what: Callable[[], str], patience: float = 180.0) -> None:
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, what()
        time.sleep(0.5)


def answer(machines: Nspawn, *words: str) -> str:
    try:
        return machines.execute(NAME, words).output.strip()
    except FalseworkError as error:
        return str(error)


def words(lab: Lab, program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program, str(lab.site_folder), str(lab.root.parent))


def in_a_login_that_ends(lab: Lab, program: str) -> None:
    """The login ends all that is in it, a program that is still at work too."""
    waiting = ("sh", "-ec", '"$@"; echo done; exec sleep 600', "login", *words(lab, program))
    with subprocess.Popen((*IN_A_LOGIN, *waiting), stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout is not None
        assert login.stdout.readline() == "done\n"
        run(("systemctl", "stop", "login.scope"))
        assert login.wait(30) != 0
    time.sleep(1)


@with_systemd
def test_it_outlives_the_login_it_was_started_in(lab: Lab, machines: Nspawn) -> None:
    in_a_login_that_ends(lab, START)
    assert machines.state(NAME).power in (Power.BOOTING, Power.RUNNING)


@with_systemd
def test_the_way_out_outlives_the_login_it_was_made_in(lab: Lab) -> None:
    in_a_login_that_ends(lab, OPEN_TO_THE_WORLD)
    assert list(nat.processes("slirp4netns", str(lab.netns_path(NETWORK))))


@with_systemd
def test_what_a_lab_can_have_does_not_depend_on_the_login(lab: Lab) -> None:
    program = "from falsework.machines.share import offered_groups; print(offered_groups()[0].path)"
    shown = run((*IN_A_LOGIN, sys.executable, "-c", program)).output.strip()
    assert set(Path(shown, "cgroup.controllers").read_text().split()) >= CONTROLLERS


def test_kubelet_and_containerd_get_healthy(lab: Lab, machines: Nspawn) -> None:
    run(words(lab, START))
    healthy = ("curl", "--silent", "--max-time", "5", "http://localhost:10248/healthz")
    until(
        lambda: answer(machines, *healthy) == "ok",
        lambda: answer(machines, "journalctl", "--no-pager", "-n", "60", "-u", "kubelet", "-u", "containerd"),
    )
    assert answer(machines, "systemctl", "is-active", "containerd.service") == "active"


def test_the_machine_has_every_controller(lab: Lab, machines: Nspawn) -> None:
    assert set(answer(machines, "cat", "/sys/fs/cgroup/cgroup.controllers").split()) >= CONTROLLERS


def test_a_static_pod_runs_in_groups_of_its_own(lab: Lab, machines: Nspawn) -> None:
    settings = machines.read_file(NAME, "/etc/containerd/shared-kernel.toml").decode()
    (image,) = {line.split('"')[1] for line in settings.splitlines() if line.strip().startswith("sandbox")}
    container = {
        "name": "pause",
        "image": image,
        "imagePullPolicy": "Never",
        "resources": {"limits": {"cpu": "100m", "memory": "32Mi"}},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "quiet"}, "spec": {"containers": [container]}}
    pod["spec"]["hostNetwork"] = True  # type: ignore[index]
    # It was not booted from a network, which would have named the DNS servers.
    machines.write_file(NAME, "/etc/resolv.conf", b"")
    machines.write_file(NAME, "/etc/kubernetes/manifests/quiet.yaml", json.dumps(pod).encode())
    until(
        lambda: "Running" in answer(machines, "crictl", "ps", "--name", "pause"),
        lambda: answer(machines, "journalctl", "--no-pager", "-n", "60", "-u", "kubelet"),
    )
    found = answer(machines, "sh", "-c", "grep -rs . /sys/fs/cgroup/kubepods --include=memory.max")
    assert str(32 << 20) in found, found


def test_its_limits_are_set_and_hold(lab: Lab, machines: Nspawn) -> None:
    (group,) = (group.child(NAME) for group in share.noted_groups(Journal(lab.journal)))
    assert (group.path / "cpu.max").read_text().split() == ["100000", "100000"]
    assert int((group.path / "memory.max").read_text()) == 1536 << 20
    spin = "for i in 1 2 3; do timeout 4 sh -c 'while :; do :; done' & done; wait"
    before, began = cgroups.usage([group]).cpu_seconds, time.monotonic()
    machines.execute(NAME, ("sh", "-c", spin))
    used = (cgroups.usage([group]).cpu_seconds - before) / (time.monotonic() - began)
    assert 0.5 < used < 1.1


@with_systemd
def test_systemd_leaves_its_groups_alone(lab: Lab, machines: Nspawn) -> None:
    (group,) = (group.child(NAME) for group in share.noted_groups(Journal(lab.journal)))
    unit = f"{lab.id}.service"
    init = machines.init(NAME)
    for word in ("daemon-reload", "daemon-reexec"):
        run(("systemctl", word))
        run(("systemd-run", "--quiet", "--wait", "--property=CPUQuota=50%", "true"))
        assert machines.init(NAME) == init
        assert set((group.path / "cgroup.controllers").read_text().split()) >= CONTROLLERS
        assert (group.path / "cpu.max").read_text().split() == ["100000", "100000"]
    status = run(("systemctl", "status", "--no-pager", "--lines=0", unit)).output
    print(status)
    assert f"Falsework lab of {lab.site_folder}" in status
    assert "active (running)" in status


@with_systemd
def test_a_second_start_uses_the_same_unit(lab: Lab, machines: Nspawn) -> None:
    shown = ("systemctl", "show", "--property=MainPID,InvocationID", f"{lab.id}.service")
    before = run(shown).output
    machines.kill(NAME)
    run(words(lab, START))
    assert run(shown).output == before


@with_systemd
def test_a_lab_whose_unit_was_stopped_starts_again(lab: Lab, machines: Nspawn) -> None:
    run(("systemctl", "stop", f"{lab.id}.service"))
    until(lambda: machines.state(NAME).power is Power.OFF, lambda: str(machines.state(NAME)), 20)
    run(words(lab, START))
    until(lambda: machines.state(NAME).power is not Power.OFF, lambda: str(machines.state(NAME)), 20)


def test_nothing_is_left_of_a_lab(lab: Lab) -> None:
    """What is left is looked for when the lab ends, right after this."""
    assert _leavings()["groups"]
