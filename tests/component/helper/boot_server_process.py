"""The boot server as it runs in the helper: from the one file, with the system's Python, as nobody."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real_api import free_port

from eventually import PATIENCE
from falsework import machine_code
from falsework.files import write_file
from falsework.helper import expectations
from falsework.helper.boot_server_files import inventory
from falsework.site.model import Site
from json_lines import json_lines

PYTHON = "/usr/bin/python3"
NOBODY = "65534"


@dataclass
class BootServer:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def public(self) -> Path:
        return self.folder / "public"

    @property
    def configs(self) -> Path:
        return self.folder / "configs"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def expect(self, *machines: str) -> None:
        self.write_expectations(expectations.written(expectations.expecting({}, machines)))

    def write_expectations(self, content: bytes) -> None:
        write_file(self.folder / "expected.json", content)

    def lines(self) -> list[dict[str, Any]]:
        return json_lines(self.log)

    def memory(self) -> int:
        """The most it has had, in KiB."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    def threads(self) -> int:
        assert self.process is not None
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))


def config_of(name: str) -> bytes:
    return json.dumps({"ignition": {"version": "3.2.0"}, "for": name}).encode()


@contextlib.contextmanager
def boot_server(
    site: Site, *, around: tuple[str, ...] = (), address: str = "0.0.0.0", port: int = 0
) -> Iterator[BootServer]:
    """Running and ready. `around` is what runs the command somewhere else."""
    with tempfile.TemporaryDirectory(prefix="falsework-boot-server-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = BootServer(folder, port or free_port())
        (folder / "falsework.pyz").write_bytes(machine_code.machine_code("boot-server"))
        (folder / "inventory.json").write_bytes(inventory(site))
        (server.public / "falsework").mkdir(parents=True)
        for machine in json.loads(inventory(site))["machines"]:
            path = server.configs / machine["config"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(config_of(machine["name"]))
        server.expect()
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices,
            server.log.open("wb") as log,
        ):
            notices.bind(str(folder / "notify"))
            (folder / "notify").chmod(0o666)
            notices.settimeout(PATIENCE)
            words = (
                *(
                    *around,
                    "setpriv",
                    "--pdeathsig",
                    "KILL",
                    f"--reuid={NOBODY}",
                    f"--regid={NOBODY}",
                    "--clear-groups",
                ),
                *("--", PYTHON, "-I", str(folder / "falsework.pyz"), "boot-server", "--address", address),
                *("--inventory", str(folder / "inventory.json"), "--expected", str(folder / "expected.json")),
                *("--public", str(server.public), "--configs", str(server.configs), "--port", str(server.port)),
            )
            env = {"NOTIFY_SOCKET": str(folder / "notify"), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
            with subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=env) as process:
                try:
                    server.process = process
                    assert notices.recv(100) == b"READY=1", server.log.read_text()
                    yield server
                    assert process.poll() in (None, 0), server.log.read_text()
                finally:
                    process.kill()
