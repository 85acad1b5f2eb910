"""Programs the host must have, and the packages that bring them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.files import holder_of, only_one
from falsework.process import CommandError, run


@dataclass(frozen=True)
class Program:
    name: str
    apt: str
    dnf: str
    looked_for: str = ""
    """A file that shows the package is there, where the program's name on PATH does not."""

    def is_there(self) -> bool:
        if self.looked_for:
            return Path(self.looked_for).exists()
        return shutil.which(self.name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None


PROGRAMS = {
    program.name: program
    for program in (
        Program("setpriv", apt="util-linux", dnf="util-linux"),
        Program("unshare", apt="util-linux", dnf="util-linux"),
        Program("nsenter", apt="util-linux", dnf="util-linux"),
        Program("mount", apt="mount", dnf="util-linux-core"),
        Program("systemd-nspawn", apt="systemd-container", dnf="systemd-container"),
        Program("ssh", apt="openssh-client", dnf="openssh-clients"),
        Program("mmdebstrap", apt="mmdebstrap", dnf="mmdebstrap"),
        Program("apt-get", apt="apt", dnf="apt"),
        Program(
            "debian-archive-keyring",
            apt="debian-archive-keyring",
            dnf="debian-keyring",
            looked_for="/usr/share/keyrings/debian-archive-keyring.gpg",
        ),
        Program("mke2fs", apt="e2fsprogs", dnf="e2fsprogs"),
        Program("qemu-system-x86_64", apt="qemu-system-x86", dnf="qemu-system-x86-core"),
        Program("mksquashfs", apt="squashfs-tools", dnf="squashfs-tools"),
        Program("ip", apt="iproute2", dnf="iproute"),
        Program("slirp4netns", apt="slirp4netns", dnf="slirp4netns"),
        Program("sshd", apt="openssh-server", dnf="openssh-server"),
        Program("dnsmasq", apt="dnsmasq-base", dnf="dnsmasq"),
        Program("haproxy", apt="haproxy", dnf="haproxy"),
        Program("nft", apt="nftables", dnf="nftables"),
        Program("curl", apt="curl", dnf="curl"),
        Program("ps", apt="procps", dnf="procps-ng"),
        Program("dig", apt="bind9-dnsutils", dnf="bind-utils"),
        Program("named-checkconf", apt="bind9-utils", dnf="bind"),
        Program("named-checkzone", apt="bind9-utils", dnf="bind"),
        Program("dhcpd", apt="isc-dhcp-server", dnf="dhcp-server"),
        Program("kea-dhcp4", apt="kea-dhcp4-server", dnf="kea"),
        Program("firewall-offline-cmd", apt="firewalld", dnf="firewalld"),
        Program("virt-xml-validate", apt="libvirt-clients", dnf="libvirt-client"),
        Program("xmllint", apt="libxml2-utils", dnf="libxml2"),
    )
}


@dataclass(frozen=True)
class PackageManager:
    program: str
    refresh: tuple[str, ...] | None
    install: tuple[str, ...]

    def command(self, packages: Sequence[str]) -> str:
        """As a person types it."""
        return " ".join((*self.install, *packages))


LOCK = Path("/run/lock/falsework-packages")
"""Package managers do not wait for each other; two of our commands that find the same program missing must."""

SYSTEMD = Path("/run/systemd/system")
"""There when systemd runs: packages look for it before they start what they bring."""

APT = PackageManager("apt-get", ("apt-get", "update", "-q"), ("apt-get", "install", "-y", "--no-install-recommends"))
DNF = PackageManager("dnf", None, ("dnf", "install", "-y", "--setopt=install_weak_deps=False"))


def missing(names: Iterable[str]) -> list[str]:
    """Those of these programs that the host lacks."""
    return [name for name in names if not PROGRAMS[name].is_there()]


def ensure(names: Iterable[str], report: Callable[[str], None]) -> None:
    """Install what is missing of these programs, or say in a sentence why that cannot be done."""
    lacking = [PROGRAMS[name] for name in missing(names)]

    def when_busy(holder: str) -> None:
        report(f"{holder} installs packages: waiting for it")

    if not lacking:
        # What is just being installed may be there before the libraries it needs are.
        if os.geteuid() == 0 and holder_of(LOCK) is not None:
            with only_one(LOCK, when_busy):
                pass
        return
    manager = _package_manager(lacking)
    packages = sorted({program.dnf if manager is DNF else program.apt for program in lacking})
    if os.geteuid() != 0:
        raise FalseworkError(
            f"{', '.join(program.name for program in lacking)} missing, and only root can install packages",
            fix=f"run `sudo {manager.command(packages)}`, then the same command again",
        )
    with only_one(LOCK, when_busy):
        if all(program.is_there() for program in lacking):
            return
        _install(manager, packages, report)


def _install(manager: PackageManager, packages: Sequence[str], report: Callable[[str], None]) -> None:
    report(f"installing {', '.join(packages)} with {manager.program}")
    # With runlevel 1 no package starts a daemon by its init script.
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        if manager.refresh:
            run(manager.refresh, env=quiet, silence_limit=300)
        run(without_daemons((*manager.install, *packages)), env=quiet, silence_limit=600)
    except CommandError as error:
        raise FalseworkError(
            f"{', '.join(packages)} could not be installed",
            cause=error.cause,
            fix="check the network and the package sources, "
            f"run `{manager.command(packages)}` by hand, then the same command again",
        ) from None


def without_daemons(command: Sequence[str]) -> tuple[str, ...]:
    """The command, in a view of the host that has no systemd to start daemons with.

    No package may start its daemons here, a DHCP server or a firewall least of all: Falsework starts what it
    needs where it needs it. The view ends with the command, so that a kill leaves nothing to put right.
    """
    if not SYSTEMD.is_dir():
        return tuple(command)
    hidden = 'mount -t tmpfs tmpfs "$1"; shift; exec "$@"'
    enter = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", hidden, "without-daemons")
    return (*enter, str(SYSTEMD.parent), *command)


def _package_manager(lacking: Sequence[Program]) -> PackageManager:
    for manager in (APT, DNF):
        if shutil.which(manager.program) and _distribution_uses(manager):
            return manager
    raise FalseworkError(
        f"this distribution ({_os_release().get('PRETTY_NAME', 'unknown')}) is unknown to Falsework",
        fix=f"install {', '.join(program.name for program in lacking)} yourself, then run the same command again",
    )


def _distribution_uses(manager: PackageManager) -> bool:
    """Fedora offers apt too, to work on Debian roots: what counts is the distribution, not the program."""
    release = _os_release()
    family = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    return bool(family & ({"debian", "ubuntu"} if manager is APT else {"fedora", "rhel", "centos"}))


def _os_release() -> dict[str, str]:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return {}
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}
