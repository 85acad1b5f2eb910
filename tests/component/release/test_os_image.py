"""The OS image, looked at from inside."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from falsework.host import packages
from falsework.process import CommandError
from falsework.release import osimage
from falsework.release.cache import Cache
from falsework.release.inventory import Release
from falsework.release.payload import load_payload
from falsework.sandbox import run_in_root


def inside(release: Release, *command: str) -> str:
    return run_in_root(release.os_root, command, binds={}).output


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("kubelet", "--version"), "Kubernetes v1.36.4"),
        (("kubectl", "version", "--client"), "v1.36.4"),
        (("containerd", "--version"), "v2.3.7"),
        (("runc", "--version"), "libseccomp: 2.5"),
        (("crictl", "--version"), "1.36.0"),
        (("ignition", "--version"), "2.26.0"),
        (("nft", "--version"), "nftables"),
        (("conntrack", "--version"), "conntrack"),
        (("python3", "-c", "import ssl, json, sqlite3; print('ok')"), "ok"),
        (("/usr/sbin/sshd", "-V"), "OpenSSH"),
        (("/opt/cni/bin/bridge", "--version"), "CNI"),
    ],
)
def test_a_node_has_what_it_needs(release: Release, command: tuple[str, ...], expected: str) -> None:
    try:
        finished = run_in_root(release.os_root, command, binds={})
    except CommandError as error:
        finished = error.finished  # some programs tell their version and end with an error
    assert expected in finished.output + finished.complaints


def test_nothing_is_enabled_until_a_machine_is_told(release: Release) -> None:
    listed = inside(release, "systemctl", "--root=/", "list-unit-files", "--no-legend", "--no-pager")
    states = {line.split()[0]: line.split()[1] for line in listed.splitlines()}
    assert states["ssh.service"] == "disabled"
    assert [unit for unit, state in states.items() if state.startswith("enabled")] == []
    assert inside(release, "systemctl", "--root=/", "get-default").strip() == "multi-user.target"


def test_presets_act_on_the_first_boot_and_disable_what_nobody_asked_for(release: Release) -> None:
    assert (release.os_root / "etc/machine-id").read_text() == "uninitialized\n"
    presets = [
        path for folder in ("etc", "usr/lib") for path in (release.os_root / folder / "systemd/system-preset").glob("*")
    ]
    assert [path.read_text() for path in presets] == ["disable *\n"]


def test_no_secret_and_no_trace_of_the_building_host_is_in_it(release: Release) -> None:
    root = release.os_root
    assert list((root / "etc/ssh").glob("ssh_host_*")) == []
    assert not (root / "etc/hostname").exists()
    assert not (root / "etc/resolv.conf").exists()
    shadow = (root / "etc/shadow").read_text().splitlines()
    assert all(line.split(":")[1] in ("*", "!", "!*") for line in shadow)


def test_a_changed_file_in_the_unpacked_root_is_noticed(release: Release, cache: Cache, tmp_path: Path) -> None:
    archive = cache.path_of(release.os_digest)
    assert osimage.differences(archive, release.os_root) == []
    copy = tmp_path / "root"
    subprocess.run(("cp", "--archive", "--reflink=auto", str(release.os_root), str(copy)), check=True)
    (copy / "etc/passwd").write_text("root::0:0::/:/bin/sh\n")
    (copy / "usr/bin/kubelet").chmod(0o777)
    (copy / "etc/machine-id").unlink()
    assert osimage.differences(archive, copy) == ["/etc/machine-id", "/etc/passwd", "/usr/bin/kubelet"]
    shutil.rmtree(copy)


def test_it_can_be_had_as_squashfs_the_same_each_time(release: Release, tmp_path: Path) -> None:
    packages.ensure(("mksquashfs",), print)
    epoch = load_payload().epoch
    for name in ("one", "two"):
        osimage.write_squashfs(release.os_root, epoch, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    listing = subprocess.run(("unsquashfs", "-l", str(tmp_path / "one")), capture_output=True, text=True, check=True)
    assert "squashfs-root/usr/bin/kubelet" in listing.stdout
