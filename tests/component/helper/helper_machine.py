"""A real helper machine in a lab of its own, and a client on the same network: a master's place, without a master."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from falsework.assets.catalogue import create
from falsework.assets.serialize import to_json
from falsework.helper.machine import HelperFiles, helper_config, read_assets
from falsework.helper.registry_store import registry_store
from falsework.helper.services import REGISTRY_STORE
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.machine_code import machine_code
from falsework.machines import netns_folder, share
from falsework.machines.network import KIND, Network, remove_netns
from falsework.machines.nspawn import Nspawn
from falsework.machines.provider import Power, Spec
from falsework.release.cache import Cache
from falsework.release.inventory import Release
from falsework.site.load import default_site
from falsework.site.model import NfsShare, Site

SHARE = "/var/nfs/registry"
REMOVERS = {KIND: remove_netns, netns_folder.KIND: netns_folder.remove, share.KIND: share.remove_groups}


def site_with_share() -> Site:
    site = default_site()
    return dataclasses.replace(site, nfs_shares=(NfsShare(SHARE, IPv4Network(site.lab.cidr)),))


def files_for(site: Site, folder: Path) -> HelperFiles:
    return helper_config(site, read_assets(site, folder), machine_code("boot-server"))


@dataclass(frozen=True)
class HelperMachine:
    site: Site
    lab: Lab
    provider: Nspawn
    boot_seconds: float
    """From the start of the system to all units being up."""

    @property
    def name(self) -> str:
        return self.site.helper.name

    @property
    def client(self) -> str:
        return self.site.masters[0].name

    def inside(self, *words: str) -> str:
        return self.provider.execute(self.name, words).output.strip()

    def client_words(self, *words: str | Path) -> list[str]:
        return ["nsenter", f"--net={self.lab.netns_path(self.client)}", "--", *map(str, words)]

    def ask(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program on the client."""
        return subprocess.run(self.client_words(*words), capture_output=True, text=True, check=False, timeout=300)

    def told(self, *words: str | Path) -> str:
        done = self.ask(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()


@contextlib.contextmanager
def helper_machine(site: Site, folder: Path, release: Release, cache: Cache) -> Iterator[HelperMachine]:
    """Assets are made in `folder`/site, which must be on the cache's file system. Nothing is left of the lab."""
    site_folder = folder / "site"
    site_folder.mkdir()
    create(site, site_folder)
    lab = Lab.of(site_folder, folder / "state")
    journal = Journal(lab.journal)
    provider = Nspawn(lab, journal)
    name = site.helper.name
    try:
        Network(site, lab, journal).build()
        config = folder / "helper.ign"
        config.write_bytes(to_json(files_for(site, site_folder).ignition()))
        provider.create(
            Spec(
                name=name,
                hostname=site.fqdn(site.helper),
                mac=site.helper.mac,
                cpus=2,
                memory_mib=site.helper.memory_mib,
                folders=(*(entry.path for entry in site.nfs_shares), "/var/lib/containerd"),
                binds={REGISTRY_STORE: str(registry_store(cache, release.images.values()))},
                ignition=config,
                address=f"{site.helper.address}/{site.lab.cidr.prefixlen}",
            ),
            release.os_root,
        )
        provider.start(name)
        _until_up(provider, name)
        made = HelperMachine(site, lab, provider, _boot_seconds(provider.console(name).read_text()))
        made.told("ip", "address", "add", f"{site.masters[0].address}/{site.lab.cidr.prefixlen}", "dev", "eth0")
        yield made
    finally:
        provider.destroy(name)
        for thing in reversed(journal.standing()):
            if thing.kind in REMOVERS:
                REMOVERS[thing.kind](thing)


def _until_up(provider: Nspawn, name: str) -> None:
    deadline = time.monotonic() + 180
    while provider.state(name).power is not Power.RUNNING:
        console = provider.console(name)
        assert time.monotonic() < deadline, console.read_text()[-3000:] if console.exists() else "no console"
        time.sleep(0.01)


def _boot_seconds(console: str) -> float:
    """The console has the seconds since power on in every line."""
    seconds = {text: float(line.split()[2]) for line in console.splitlines() for text in [line.split(None, 3)[3]]}
    return seconds["systemd is up"] - seconds["starting systemd"]
