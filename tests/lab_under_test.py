"""A lab brought up with the command line, as a person does it, in folders of the test's own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falsework.lab.folder import Lab
from falsework.machines.nspawn import Nspawn
from falsework.machines.provider import Power
from falsework.machines.providers import provider_of
from falsework.machines.view import View
from falsework.release.cache import default_root
from falsework.site.load import default_site
from falsework.site.model import Site


@dataclass(frozen=True)
class LabUnderTest:
    lab: Lab
    temporary: Path
    """Where its programs put temporary files: whatever is left there was left by this lab."""

    @classmethod
    def below(cls, state: Path, folder: Path) -> LabUnderTest:
        temporary = folder / "temporary"
        temporary.mkdir(parents=True)
        return cls(Lab.of(folder / "site", state), temporary)

    @property
    def site(self) -> Site:
        return default_site()

    @property
    def machines(self) -> Nspawn:
        return provider_of(self.lab)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "FALSEWORK_STATE": str(self.lab.root.parent), "TMPDIR": str(self.temporary)}

    def command(self, *words: str) -> list[str]:
        """Our own words come first, so that the folder is said before those of another program."""
        name, *rest = words
        group = [rest.pop(0)] if name in ("balancer", "csr", "machine", "node", "wait-for") else []
        return [sys.executable, "-m", "falsework", name, *group, "--dir", str(self.lab.site_folder), *rest]

    def run(self, *words: str, code: int = 0, limit: float = 600) -> str:
        """What it printed to stdout; both streams in the message when it does not end as it should."""
        done = subprocess.run(
            self.command(*words), env=self.environment(), capture_output=True, text=True, timeout=limit, check=False
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stdout + done.stderr

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*words),
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ledger(self, *words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run("ledger", "--json", *words).splitlines()]

    def inside(self, machine: str, *words: str) -> str:
        return self.machines.execute(machine, words).output.strip()

    def typed(self, machine: str, command: str) -> str:
        """On a machine, logged in as a guide says, at a terminal: some commands insist on one."""
        quoted = command.replace("'", "'\\''")
        return self.run("ssh", machine, "--", f"script -qec '{quoted}' /dev/null").replace("\r\n", "\n")

    def at_the_workstation(self, command: str, limit: float = 600) -> str:
        return self.run("shell", "-c", command, limit=limit)

    def found(self, *words: str) -> list[dict[str, Any]]:
        """Objects, as `kubectl get` lists them."""
        listed: list[dict[str, Any]] = json.loads(self.run("kubectl", "get", *words, "-o", "json"))["items"]
        return listed

    def view(self, *words: str | Path) -> list[str]:
        """The command with which `words` run in the lab's network, as at a workstation there."""
        return list(View(self.site, self.lab).command(words))

    def until_ready(self, patience: float = 300) -> None:
        """Until the API is ready behind the load balancer."""
        ask = f"curl -sk --max-time 2 https://{self.site.api_host}:6443/readyz || true"
        deadline = time.monotonic() + patience
        while (said := self.run("shell", "-c", ask)) != "ok":
            assert time.monotonic() < deadline, said
            time.sleep(0.3)

    def until(self, machine: str, power: Power, doing: str = "", patience: float = 180) -> None:
        deadline = time.monotonic() + patience
        while (state := self.machines.state(machine)).power is not power or doing not in state.doing:
            console = self.machines.console(machine)
            shown = console.read_text()[-3000:] if console.exists() else "(nothing on the console)"
            assert time.monotonic() < deadline, f"{machine}: {state}\n{shown}"
            time.sleep(0.05)


@contextlib.contextmanager
def lab_up_to(stage: str, folder: Path) -> Iterator[LabUnderTest]:
    """A lab brought as far as a stage, beside the cache, whose files it links; gone with the block."""
    with tempfile.TemporaryDirectory(dir=default_root().parent, prefix="falsework-test-") as state:
        lab = LabUnderTest.below(Path(state), folder)
        try:
            lab.run("up", "--until", stage)
            yield lab
        finally:
            lab.run("destroy", "--yes")


@contextlib.contextmanager
def bootstrap_alone(folder: Path) -> Iterator[LabUnderTest]:
    """A lab with a temporary control plane that stays: no master runs that could take over."""
    with lab_up_to("helper", folder) as lab:
        lab.run("machine", "start", "bootstrap")
        lab.until_ready()
        yield lab


def events_of(output: str) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]
