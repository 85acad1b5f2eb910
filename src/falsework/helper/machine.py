"""The helper machine: every file and unit of it, and which service a file belongs to.

It is one value, made from the site and its assets alone. The first time it goes to the machine as an Ignition config;
later it is compared with the machine (`update`), and only what differs is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from falsework import machine_code
from falsework.assets import ignition, node
from falsework.assets.ignition import Config, File, Link
from falsework.assets.keys_in_folder import SSH_KEY
from falsework.helper import boot, services
from falsework.helper.boot import boot_files, config_path
from falsework.helper.boot_server_files import USER as BOOT_SERVER
from falsework.helper.boot_server_files import boot_server_unit, inventory
from falsework.helper.bootserver import CONFIG_FOLDER, INVENTORY, PUBLIC_FOLDER
from falsework.helper.render import pxe
from falsework.helper.services import Reaction, Service
from falsework.site.model import Distribution, Site

UNITS = "/etc/systemd/system"
LISTING = "/etc/falsework/helper-files"
"""A line for every file that is ours, for whoever has to remove what is no longer wanted."""

_LOADERS = {
    boot.BIOS_LOADER: "/usr/lib/PXELINUX/pxelinux.0",
    "ldlinux.c32": "/usr/lib/syslinux/modules/bios/ldlinux.c32",
    boot.UEFI_LOADER: "/usr/lib/ipxe/ipxe.efi",
}


@dataclass(frozen=True)
class HelperFiles:
    services: tuple[Service, ...]
    files: tuple[File, ...]
    """Those no service has to be told of."""
    links: tuple[Link, ...]
    ssh_keys: tuple[str, ...]

    @cached_property
    def all_files(self) -> dict[str, File]:
        """By path; with the listing of them all, and without the units."""
        found = [*self.files, *(file for service in self.services for file in service.all_files)]
        listing = "".join(f"{path}\n" for path in sorted([*(file.path for file in found), *self.unit_files]))
        return {file.path: file for file in (*found, File(LISTING, listing.encode()))}

    @cached_property
    def unit_files(self) -> dict[str, File]:
        """Of the units that are ours, not the image's."""
        units = (service.unit for service in self.services)
        files = (File(f"{UNITS}/{unit.name}", unit.contents.encode()) for unit in units if unit.contents is not None)
        return {file.path: file for file in files}

    def ignition(self) -> Config:
        return ignition.config(
            files=list(self.all_files.values()),
            links=self.links,
            units=[service.unit for service in self.services],
            ssh_keys={"core": self.ssh_keys},
        )


def helper_config(site: Site, assets: Mapping[str, bytes], code: bytes) -> HelperFiles:
    """`assets` are those of `asset_names`. The code is what runs in machines; the boot server is part of it, and looks
    at its other files for every request, so a change of those is nothing it has to be told of."""
    boot_server = Service(boot_server_unit(), (File(machine_code.PATH, code),), Reaction.RESTART)
    machines = File(INVENTORY, inventory(site))
    return HelperFiles(
        services=(*services.of(site, assets), boot_server),
        files=(*_host_files(site), machines, *_boot_scripts(site), *_configs(site, assets)),
        links=_links(site),
        ssh_keys=_ssh_keys(site, assets),
    )


def asset_names(site: Site) -> tuple[str, ...]:
    """What the helper needs from the folder with the assets."""
    return (*_config_files(site), *_key_names(site), *services.asset_names(site))


def read_assets(site: Site, folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in asset_names(site)}


def _host_files(site: Site) -> list[File]:
    return [
        File("/etc/hostname", f"{site.fqdn(site.helper)}\n".encode()),
        File("/etc/resolv.conf", f"search {site.domain}\nnameserver 127.0.0.1\n".encode()),
        node.SUDO,
        File("/etc/tmpfiles.d/falsework.conf", _closed_folders(site).encode()),
    ]


def _closed_folders(site: Site) -> str:
    """Configs hold credentials. What is written into these folders later is the group's too, and nobody else's."""
    folders = sorted({str(Path(file).parent) for file in _config_files(site).values()})
    return "".join(f"d {folder} 2750 root {BOOT_SERVER} -\n" for folder in folders)


def _boot_scripts(site: Site) -> list[File]:
    """iPXE's are asked for by HTTP, the others by TFTP."""
    homes = {"ipxe": PUBLIC_FOLDER}
    return [
        File(f"{homes.get(path.partition('/')[0], boot.TFTP_ROOT)}/{path}", text.encode())
        for path, text in pxe.render(site).items()
    ]


def _links(site: Site) -> tuple[Link, ...]:
    """The TFTP server has the loaders from the image, and the same boot files as the HTTP server."""
    shared = (boot_files(site).kernel.partition("/")[0], "ipxe")
    return (
        *(Link(f"{boot.TFTP_ROOT}/{name}", target) for name, target in _LOADERS.items()),
        *(Link(f"{boot.TFTP_ROOT}/{name}", f"{PUBLIC_FOLDER}/{name}") for name in shared),
    )


def _configs(site: Site, assets: Mapping[str, bytes]) -> list[File]:
    return [File(file, assets[path], 0o640, BOOT_SERVER) for path, file in _config_files(site).items()]


def _config_files(site: Site) -> dict[str, str]:
    """Among the assets → in the helper."""
    paths = (config_path(site, machine) for machine in site.machines)
    return {path: f"{CONFIG_FOLDER}/{path}" for path in paths}


def _key_names(site: Site) -> tuple[str, ...]:
    return () if site.distribution is Distribution.OPENSHIFT else (f"{SSH_KEY}.pub",)


def _ssh_keys(site: Site, assets: Mapping[str, bytes]) -> tuple[str, ...]:
    return (*site.ssh_keys, *(assets[name].decode().strip() for name in _key_names(site)))
