"""The Machine Config Server as it runs on the bootstrap machine: the one file, its folder from bootstrap.ign."""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventually import eventually
from falsework import machine_code
from falsework.assets.catalogue import Step, create
from falsework.assets.ignition import files_in
from falsework.bootstrap.machine_config_server import CONFIGS
from falsework.site.model import Site
from json_lines import json_lines

BOOT = "3a7c3b0e-53a1-4f6e-8a5d-2f5a6f0c1b77"


@dataclass
class ConfigServer:
    folder: Path
    assets: Path
    address: str
    port: int
    host: str
    """The name in its certificate."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def configs(self) -> Path:
        return self.folder / "configs"

    @property
    def authority(self) -> Path:
        return self.assets / "tls" / "root-ca.crt"

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def lines(self) -> list[dict[str, Any]]:
        return json_lines(self.folder / "log")

    def in_the_ledger(self) -> list[dict[str, Any]]:
        path = self.folder / "state" / "ledger.jsonl"
        return json_lines(path) if path.exists() else []

    def served(self) -> dict[str, Any]:
        path = self.folder / "state" / "served.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def memory(self) -> int:
        """The most it has had, in KiB."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])


@contextlib.contextmanager
def config_server(
    site: Site, assets: Path, address: str, port: int, *, around: tuple[str, ...] = (), pools: tuple[str, ...] = ()
) -> Iterator[ConfigServer]:
    """Running and ready. `around` is what runs the command somewhere else."""
    if not (assets / "bootstrap.ign").exists():
        create(site, assets, Step.ALL)
    with tempfile.TemporaryDirectory(prefix="falsework-mcs-") as name:
        server = ConfigServer(Path(name), assets, address, port, site.api_int_host)
        folder = server.folder
        (folder / "falsework.pyz").write_bytes(machine_code.machine_code("machine-config-server"))
        (folder / "boot_id").write_text(BOOT.replace("-", "") + "\n")
        for path, content in files_in(json.loads((assets / "bootstrap.ign").read_bytes())).items():
            if path.startswith(f"{CONFIGS}/"):
                file = server.configs / path.removeprefix(f"{CONFIGS}/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        (folder / "tls").mkdir()
        for ending in ("crt", "key"):
            (folder / "tls" / f"tls.{ending}").write_bytes(
                (assets / f"tls/machine-config-server.{ending}").read_bytes()
            )
        words = (
            *around,
            *("setpriv", "--pdeathsig", "KILL", "--", sys.executable, str(folder / "falsework.pyz")),
            *("machine-config-server", "--configs", str(server.configs), "--certificates", str(folder / "tls")),
            *("--state", str(folder / "state"), "--boot-id", str(folder / "boot_id")),
            *("--address", address, "--port", str(port)),
            *(f"--pool={pool}" for pool in pools),
        )
        with (
            (folder / "log").open("wb") as log,
            (folder / "errors").open("wb") as errors,
            subprocess.Popen(words, stdout=log, stderr=errors) as process,
        ):
            try:
                server.process = process
                eventually(lambda: process.poll() is not None or _listens(around, port), "it does not listen")
                assert process.poll() is None, (folder / "errors").read_text()
                yield server
                assert process.poll() in (None, 0), (folder / "errors").read_text()
                assert (folder / "errors").read_text() == ""
            finally:
                process.kill()


def _listens(around: tuple[str, ...], port: int) -> bool:
    words = (*around, "ss", "-lntH")
    return f":{port} " in subprocess.run(words, capture_output=True, text=True, check=True).stdout
