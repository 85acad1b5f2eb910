"""Logging in by a real SSH server, which stands in a machine's namespace with a user `core` of its own."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_network import TestLab, test_lab

from falsework.assets.keys_in_folder import SSH_KEY
from falsework.errors import FalseworkError
from falsework.host import packages
from falsework.machines import ssh
from falsework.machines.view import View

SERVER = """
mount -t tmpfs t "$1/empty"; cd "$1/empty"; mkdir -p up work run/sshd
mount -t overlay -o lowerdir=/etc,upperdir=up,workdir=work etc /etc
echo "core:x:4711:4711::$1/home:/bin/sh" >>/etc/passwd
echo "sshd:x:4712:65534::/run/sshd:/usr/sbin/nologin" >>/etc/passwd
echo "core:*:19000:0:99999:7:::" >>/etc/shadow
mount --rbind run /run
exec "$(command -v sshd)" -D -e -f "$1/sshd_config"
"""


class Server:
    def __init__(self, lab: TestLab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.machine = lab.site.masters[0]

    def read(self, name: str, path: str) -> bytes:
        """As a provider reads a machine's file; this one has a single host key."""
        assert name == self.machine.name
        return (self.folder / "keys" / Path(path).name).read_bytes()

    def login(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ssh.command(self.lab.site, self.lab.lab, self.machine, self.read, words)
        view = View(self.lab.site, self.lab.lab)
        return subprocess.run(view.command(command), capture_output=True, text=True, check=False, timeout=120)


def new_key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    packages.ensure(["ssh", "sshd"], print)
    folder = tmp_path_factory.mktemp("ssh")
    # Every folder on the way is closed to others, and the server's user is one.
    for path in (folder, folder.parent, folder.parent.parent):
        path.chmod(0o755)
    with test_lab(folder) as lab, contextlib.ExitStack() as stack:
        made = Server(lab, folder)
        lab.network.build()
        lab.give_addresses(made.machine)
        new_key(folder / "keys" / "ssh_host_ed25519_key")
        new_key(lab.lab.site_folder / SSH_KEY)
        (folder / "authorized").write_bytes((lab.lab.site_folder / f"{SSH_KEY}.pub").read_bytes())
        (folder / "home").mkdir()
        (folder / "empty").mkdir()
        (folder / "sshd_config").write_text(
            f"HostKey {folder}/keys/ssh_host_ed25519_key\nAuthorizedKeysFile {folder}/authorized\n"
            f"ListenAddress {made.machine.address}\nUsePAM no\nPasswordAuthentication no\nStrictModes no\n"
            "PidFile none\n"
        )
        alone = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", SERVER, "sshd", folder)
        stack.enter_context(lab.daemon(made.machine.name, *alone, log=folder / "sshd.log"))
        while "listening" not in (log := (folder / "sshd.log").read_text()):
            assert "fatal" not in log, log
            time.sleep(0.05)
        yield made


def test_a_command_by_ssh(server: Server) -> None:
    done = server.login("id -un; cat /proc/net/dev; exit 9")
    assert done.returncode == 9, done.stderr + (server.folder / "sshd.log").read_text()
    assert done.stdout.startswith("core\n")
    assert "eth0" in done.stdout, "it runs in the machine's network"
    assert done.stderr == ""


def test_a_server_with_another_key_is_not_believed(server: Server, tmp_path: Path) -> None:
    true = (server.folder / "keys" / "ssh_host_ed25519_key.pub").read_bytes()
    new_key(tmp_path / "other")
    try:
        (server.folder / "keys" / "ssh_host_ed25519_key.pub").write_bytes((tmp_path / "other.pub").read_bytes())
        done = server.login("true")
    finally:
        (server.folder / "keys" / "ssh_host_ed25519_key.pub").write_bytes(true)
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_a_machine_without_host_keys_yet(server: Server) -> None:
    def nothing(name: str, path: str) -> bytes:
        raise FileNotFoundError(path)

    with pytest.raises(FalseworkError, match="has no SSH host keys yet"):
        ssh.command(server.lab.site, server.lab.lab, server.machine, nothing, ())
