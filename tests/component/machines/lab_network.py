"""A lab of a test's own, with its real network; and what the host looks like, to compare before and after."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from falsework.host import packages
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machines import nat, netns_folder
from falsework.machines.namespaces import FOLDER
from falsework.machines.network import KIND, Network, remove_netns
from falsework.site.load import default_site
from falsework.site.model import Helper, Machine, Site

REMOVERS = {KIND: remove_netns, nat.KIND: nat.end_process, netns_folder.KIND: netns_folder.remove}


@dataclass(frozen=True)
class TestLab:
    __test__ = False

    lab: Lab
    journal: Journal
    site: Site = field(default_factory=default_site)

    @property
    def network(self) -> Network:
        return Network(self.site, self.lab, self.journal)

    def inside(self, name: str, argv: Sequence[str | Path]) -> list[str]:
        return ["nsenter", f"--net={self.lab.netns_path(name)}", "--", *map(str, argv)]

    def run(self, name: str, *argv: str | Path) -> str:
        done = subprocess.run(self.inside(name, argv), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{argv} in {name}: {done.stdout}{done.stderr}"
        return done.stdout

    def answers(self, name: str, address: object) -> bool:
        """Nobody listens on that port, and only the machine itself can say so; where there is none, the kernel does."""
        words = self.inside(name, ("timeout", "30", "bash", "-c", f": </dev/tcp/{address}/9"))
        return "refused" in subprocess.run(words, capture_output=True, text=True, check=False).stderr

    def give_addresses(self, *machines: Machine | Helper) -> None:
        """What each machine would get by DHCP."""
        for machine in machines:
            address = f"{machine.address}/{self.site.lab.cidr.prefixlen}"
            self.run(machine.name, "ip", "address", "add", address, "dev", "eth0")
            self.run(machine.name, "ip", "route", "add", "default", "via", str(self.site.lab.gateway))

    @contextlib.contextmanager
    def daemon(self, name: str, *argv: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        words = ("setpriv", "--pdeathsig", "KILL", "--", *argv)
        with log.open("wb") as output:
            child = subprocess.Popen(self.inside(name, words), stdout=output, stderr=output)
            with child:
                try:
                    yield child
                finally:
                    child.kill()

    def changed(self, *, nat: bool) -> TestLab:
        network = dataclasses.replace(self.site.lab, nat=nat)
        return dataclasses.replace(self, site=dataclasses.replace(self.site, lab=network))

    def remove(self) -> None:
        for thing in reversed(self.journal.standing()):
            REMOVERS[thing.kind](thing)
            self.journal.removed(thing)


@contextlib.contextmanager
def test_lab(folder: Path) -> Iterator[TestLab]:
    """Nothing is built yet; nothing is left of it afterwards."""
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["ip"], print)
    site_folder = folder / "site"
    site_folder.mkdir(parents=True)
    lab = Lab.of(site_folder, folder / "state")
    made = TestLab(lab, Journal(lab.journal))
    try:
        yield made
    finally:
        made.remove()
        assert leftovers(lab) == []


test_lab.__test__ = False  # type: ignore[attr-defined]


def leftovers(lab: Lab) -> list[str]:
    """Whatever still has the lab's name on it."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if lab.id in line]
    processes = [str(pid) for pid, _ in nat.processes("slirp4netns", str(lab.netns_path("_network")))]
    return [*map(str, FOLDER.glob(f"{lab.id}*")), *mounts, *processes]


def host_state() -> dict[str, str]:
    """The host's own network, all of it that stands still."""
    commands = {
        "links": "ip -o link",
        "addresses": "ip -o address",
        "routes": "ip route show table all",
        "rules": "ip rule",
        "firewall": "nft list ruleset",
    }
    found = {name: subprocess.check_output(words.split(), text=True) for name, words in commands.items()}
    for path in sorted(Path("/proc/sys/net").rglob("*")):
        # What is counted there moves by itself.
        if path.is_file() and not path.name.endswith(("_count", "_mem_usage")):
            with contextlib.suppress(OSError):
                found[str(path)] = path.read_text(errors="replace")
    return found
